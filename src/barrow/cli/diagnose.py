"""``barrow diagnose``: what is wrong with a run, why that is said, and what to do."""

import json
import sys
from dataclasses import asdict

import click

STATUS = {"note": 0, "warning": 3, "failure": 4}
"""Exit status by the gravest finding; 1 and 2 say that the command itself failed."""


@click.command("diagnose")
@click.argument("folder", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(folder: str, as_json: bool) -> None:
    """Say what is wrong with a run.

    FOLDER is that of a run or of a watched program, or the place of a stored
    result; also of one that was killed or still runs. Needs no cluster. The
    exit status is 0 if there are at most notes, 3 after a warning, 4 after a
    failure.
    """
    from barrow.diagnosing.text import format_findings
    from barrow.explaining import diagnose
    from barrow.recording.reading import open_record

    record = open_record(folder)
    found = diagnose(folder)
    if as_json:
        rows = [{**asdict(finding), "family": finding.family} for finding in found]
        click.echo(json.dumps({"status": record.status, "findings": rows}, indent=2))
    else:
        facts = record.facts
        seconds = float(facts.get("ended") or 0) - float(facts.get("began") or 0)
        click.echo(format_findings(found, max(0.0, seconds)))
    sys.exit(max((STATUS[finding.severity] for finding in found), default=0))
