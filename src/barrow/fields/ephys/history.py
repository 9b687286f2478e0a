"""What was done to data: a log, and settings that can be used again."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from barrow.fields.ephys.settings import StructDict, plain


class History:
    """A log with a line for each step, the settings of each call, and what else came out."""

    cfg: StructDict
    """The settings of each call, under its name."""
    info: dict[str, Any]
    """What else an analysis has found, such as trials with NaN."""

    def __init__(self) -> None:
        self.cfg, self.info = StructDict(), {}
        self._log: list[str] = []

    def take_history(self, other: "History") -> None:
        """Copy the history of other data."""
        self.cfg, self.info, self._log = other.cfg.copy(), dict(other.info), list(other._log)

    @property
    def log(self) -> str:
        """What was done to these data, one line for each step."""
        return "\n".join(self._log)

    def note(self, text: str) -> None:
        """Add a line to the log."""
        stamp = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        self._log.append(f"{stamp} {text}")

    def inherit(self, other: "History", call: str, settings: Mapping[str, Any]) -> None:
        """Take over the history of the data that this was made of, and add a step."""
        self.cfg = other.cfg.copy()
        self.cfg[call] = StructDict({key: plain(value) for key, value in settings.items()})
        self._log = list(other._log)
        said = ", ".join(f"{key}={value!r}" for key, value in self.cfg[call].items())
        self.note(f"{call}: {said}")
