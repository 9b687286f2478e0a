"""``barrow compare``: two runs side by side."""

from pathlib import Path

import click


@click.command("compare")
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@click.option("--html", "page", type=click.Path(), help="Write the comparison as a page, too.")
def command(first: str, second: str, page: str | None) -> None:
    """Show what differs between two runs: time, memory, steps, plan, versions, settings.

    FIRST and SECOND are folders of runs, or places of their stored results.
    """
    from barrow.explaining import explain
    from barrow.reporting.comparing import compare, format_comparison, format_comparison_html
    from barrow.reporting.html import read_css
    from barrow.reporting.writing import write_text

    differences = compare(explain(first), explain(second))
    names = first, second
    click.echo(format_comparison(differences, names))
    if page is not None:
        write_text(format_comparison_html(differences, names, read_css()), Path(page))
        click.echo(f"\nComparison in {page}")
