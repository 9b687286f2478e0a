"""What a study shows: a sentence, a table and figures, as text, in a notebook, and in files."""

from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path

from barrow.errors import InputError
from barrow.reporting.figure import Figure
from barrow.reporting.html import list_scripts, render
from barrow.reporting.text import align
from barrow.reporting.writing import write_bytes, write_text

KINDS = (".html", ".json", ".png")


@dataclass(frozen=True)
class Study:
    """What is shown of a study, in words."""

    title: str
    headline: str
    """What to do, and why."""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    """What one has to know to read the numbers."""
    figures: tuple[Figure, ...] = ()


class Shown:
    """Something with a study to show; it only has to say what, and its data as JSON."""

    def study(self) -> Study:
        """Return what is shown."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return all numbers as JSON text."""
        raise NotImplementedError

    def save(self, path: str | PathLike[str]) -> Path:
        """Write it to a file: a page (``.html``), numbers (``.json``), or figures (``.png``).

        A page is one file that needs no network.
        """
        place = Path(path)
        if place.suffix not in KINDS:
            raise InputError(
                f"{str(path)!r} does not say what to write: give a name that ends with "
                f"{', '.join(KINDS)}."
            )
        if place.suffix == ".json":
            return write_text(self.to_json() + "\n", place)
        if place.suffix == ".html":
            return write_text(format_page(self.study()), place)
        from barrow.reporting.pictures import draw_png

        return write_bytes(draw_png(self.study().figures), place)

    def __str__(self) -> str:
        return format_study(self.study())

    def _repr_html_(self) -> str:
        return format_table(self.study())


def format_study(study: Study) -> str:
    """Return a study as lines for a terminal."""
    table = align([study.head, *study.rows])
    return "\n".join([study.title, "", *table, "", study.headline, *study.notes])


def format_table(study: Study) -> str:
    """Return a study as a table for a notebook."""
    head = "".join(f"<th>{escape(name)}</th>" for name in study.head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in study.rows
    )
    said = "".join(f"<p>{escape(text)}</p>" for text in (study.headline, *study.notes))
    return f"<table><caption>{escape(study.title)}</caption><tr>{head}</tr>{body}</table>{said}"


def format_page(study: Study) -> str:
    """Return a study as one HTML file that needs nothing else."""
    figures = {figure.name: figure for figure in study.figures}
    return render("study.html", figures, list_scripts(), study=study)
