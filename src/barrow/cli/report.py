"""``barrow report``: what a run did, in a page, in the terminal, as data."""

from pathlib import Path

import click


@click.command("report")
@click.argument("folder", type=click.Path())
@click.option("--to", type=click.Path(), help="Folder for the files; by default that of the run.")
@click.option("--open", "is_opened", is_flag=True, help="Show the page in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON; write nothing.")
@click.option(
    "--trace", is_flag=True, help="Write trace.json as well, for ui.perfetto.dev or Chrome."
)
def command(folder: str, to: str | None, is_opened: bool, as_json: bool, trace: bool) -> None:
    """Write the report of a run.

    FOLDER is that of a run, or the place of its stored result, also of one
    that was killed. The page is one file that needs no network.
    """
    from barrow.explaining import explain_record
    from barrow.recording.reading import open_record
    from barrow.reporting.text import format_text
    from barrow.reporting.writing import write_page, write_trace_file

    record = open_record(folder)
    content = explain_record(record)
    if as_json:
        click.echo(content.to_json())
        return
    click.echo(f"{format_text(content)}\n")
    place = record.path.parent if to is None else Path(to)
    page = write_page(content, place)
    click.echo(f"Report in {page}")
    if trace:
        click.echo(f"Trace in {write_trace_file(record, place)}: open it in ui.perfetto.dev")
    if is_opened:
        click.launch(str(page))
