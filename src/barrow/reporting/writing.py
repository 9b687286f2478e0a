"""Put a report into files, beside the record it was made from."""

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from barrow.errors import OutputError
from barrow.model.finding import Finding
from barrow.reporting.content import Content, Outlook
from barrow.reporting.gathering import gather
from barrow.reporting.html import format_html
from barrow.reporting.tables import Tables
from barrow.reporting.trace import write_trace


def read_content(
    record: Tables, findings: Sequence[Finding] = (), outlook: Outlook | None = None
) -> Content:
    """Return what a report says; a run without an end is looked for among the processes."""
    content = gather(record, findings=findings, is_alive=_is_alive(record.facts))
    return replace(content, outlook=outlook)


def write_page(content: Content, folder: Path) -> Path:
    """Write ``report.html`` and ``report.json``, and return the path of the page."""
    page, data = format_html(content), content.to_json()
    _write(folder / "report.json", lambda file: file.write(data))
    return _write(folder / "report.html", lambda file: file.write(page))


def write_trace_file(record: Tables, folder: Path) -> Path:
    """Write ``trace.json``, and return its path."""
    return _write(folder / "trace.json", lambda file: write_trace(record, file))


def write_text(text: str, path: Path) -> Path:
    """Write a text to a file that is whole or not there."""
    return _write(path, lambda file: file.write(text))


def write_bytes(content: bytes, path: Path) -> Path:
    """Write bytes to a file that is whole or not there."""
    return _write(path, lambda file: file.buffer.write(content))


def _write(path: Path, fill: Callable[[TextIO], object]) -> Path:
    """Write a file that appears when it is whole."""
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What a name holds that no text may hold must not cost the report.
        with open(partial, "w", encoding="utf-8", errors="replace") as file:
            fill(file)
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise OutputError(
            f"{path} cannot be written: {error.strerror}. Choose another folder with to=."
        ) from error
    return path


def _is_alive(facts: Mapping[str, Any]) -> bool | None:
    """Tell whether the process that made a record still runs; None if it cannot be known."""
    import platform

    pid, host = facts.get("pid"), facts.get("host")
    if not isinstance(pid, int) or host != platform.node():
        return None
    import psutil

    try:
        process = psutil.Process(pid)
        # Another one may have taken its number since.
        began = float(facts.get("began") or 0)
        return bool(process.create_time() <= began and process.status() != "zombie")
    except psutil.Error:
        return False
