"""Take a result that is already there, if it is the one asked for."""

import json
import sqlite3
from dataclasses import replace

from barrow.errors import OutputError
from barrow.explaining import diagnose, write_report
from barrow.model.plan import Plan
from barrow.model.run import Run
from barrow.presenting import open_stored, present
from barrow.recording.metrics import compare
from barrow.recording.record import read_skipped
from barrow.running.folders import RunFolder, damaged_result
from barrow.units import format_count


def reuse(plan: Plan, folder: RunFolder, key: str | None) -> Run:
    """Return a result that is already there, if it is the one asked for."""
    if key is None or folder.read_key() != key:
        raise OutputError(
            f"{folder.store} holds another result: it was made by another function, with other "
            "arguments or from other data. Choose another place, or move it away."
        )
    try:
        skipped = read_skipped(folder.record_path)
        metrics = json.loads(folder.metrics_path.read_text())
        plan = replace(plan, measured=compare(plan, metrics))
    except (OSError, ValueError, KeyError, TypeError, sqlite3.Error) as error:
        why = f"what is kept of its run cannot be read ({error})"
        raise damaged_result(folder, why) from None
    if skipped and plan.options.get("on_error") != "skip":
        raise OutputError(
            f"{folder.store} holds this result, but {format_count(len(skipped), 'chunk')} of it "
            f"were skipped. The first: {skipped[0]}\nUse it with on_error='skip', or choose "
            "another place."
        )
    try:
        opened = open_stored(plan, folder.store)
    except Exception as error:
        raise OutputError(
            f"{folder.store} holds a result that cannot be opened any more: {error}. It is left "
            "as it is. Move it away to compute it again, or choose another place."
        ) from None
    return Run(present(plan, opened), plan, metrics, folder.root, skipped, write_report, diagnose)
