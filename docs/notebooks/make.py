"""Make a notebook of each tutorial of a science, and execute it.

    python docs/notebooks/make.py [NAME ...]

A notebook has the words and the code of its tutorial, so that there is one text to keep. It runs in
an empty folder; what the code prints and draws is kept in the notebook, beside this file.
"""

import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
TUTORIALS = HERE.parent / "tutorial"
NAMES = ("collider", "ephys", "miniscope", "spatial")
TIMEOUT_SECONDS = 300

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^!\[.*?\]\(.*?\)\n", re.MULTILINE)
NOT_RUN = "# not run\n"
# Jupyter has a way of its own to show figures.
OTHER_BACKEND = re.compile(r'^import matplotlib\n+matplotlib\.use\("Agg"\)\n', re.MULTILINE)
SHOW = "%matplotlib inline"
SAVED = re.compile(r"^(figure)\.savefig\(.*\)\n?", re.MULTILINE)


def make_notebook(name: str) -> nbformat.NotebookNode:
    """Return the tutorial of a science as a notebook that was not executed yet."""
    cells = [
        nbformat.v4.new_code_cell(text, id=f"cell-{number}")
        if kind == "code"
        else nbformat.v4.new_markdown_cell(text, id=f"cell-{number}")
        for number, (kind, text) in enumerate(
            _show_figures(read_cells((TUTORIALS / f"{name}.md").read_text()))
        )
    ]
    return nbformat.v4.new_notebook(cells=cells)


def read_cells(page: str) -> list[tuple[str, str]]:
    """Return the cells of a page: kind and text.

    Examples
    --------
    >>> read_cells("# One\\n\\n```python\\n1 + 1\\n```\\n\\n```text\\n2\\n```\\nwords\\n")
    [('words', '# One'), ('code', '1 + 1'), ('words', 'words')]
    """
    cells: list[tuple[str, str]] = []
    words, end = "", 0
    for block in BLOCK.finditer(page):
        words += page[end : block.start()]
        end = block.end()
        language, text = block.groups()
        is_code = language == "python" and not text.startswith(NOT_RUN)
        if not is_code:
            # What is printed is shown by the notebook itself.
            words += "" if language == "text" and cells else block[0].replace(NOT_RUN, "")
            continue
        cells += [("words", words), ("code", _adapt(text))]
        words = ""
    cells.append(("words", words + page[end:]))
    stripped = [(kind, PICTURE.sub("", text).strip()) for kind, text in cells]
    return [(kind, text) for kind, text in stripped if text]


def _show_figures(cells: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Let the first cell of code ask for figures, also for those that pyplot did not make."""
    first = next(number for number, (kind, _) in enumerate(cells) if kind == "code")
    return [*cells[:first], ("code", f"{SHOW}\n{cells[first][1]}"), *cells[first + 1 :]]


def _adapt(code: str) -> str:
    """Return code that shows its figures instead of saving them."""
    code = OTHER_BACKEND.sub("", code)
    # Figures of pyplot show themselves at the end of their cell; others when they are named.
    is_named = "figure = " in code
    return SAVED.sub(r"\1\n" if is_named else "", code)


def execute(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Run a notebook from top to bottom in an empty folder; an error in a cell is raised."""
    with tempfile.TemporaryDirectory(prefix="barrow-notebook-") as folder:
        NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=TIMEOUT_SECONDS,
            startup_timeout=TIMEOUT_SECONDS,
            resources={"metadata": {"path": folder}},
        ).execute()
    for cell in notebook.cells:
        # When it was done changes with every time, and says nothing.
        cell.metadata.pop("execution", None)
    return notebook


def main() -> None:
    """Make and execute all notebooks, or some."""
    for name in sys.argv[1:] or NAMES:
        notebook = execute(make_notebook(name))
        notebook.metadata.pop("widgets", None)
        nbformat.write(notebook, HERE / f"{name}.ipynb")
        print(f"{name}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells")


if __name__ == "__main__":
    main()
