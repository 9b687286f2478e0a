"""Where each trial lies among the samples, and when it begins.

Numbers only: no samples are read here.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.fields.ephys.selecting import cut_latency, find_window


@dataclass(frozen=True, eq=False)
class TrialTable:
    """The trials of a recording, one in each row.

    Examples
    --------
    >>> table = TrialTable.of_lengths([500, 300])
    >>> table.definition().tolist()
    [[0.0, 500.0, 0.0], [500.0, 800.0, 0.0]]
    >>> table.pick(np.array([1])).lengths.tolist()
    [300]
    """

    rows: np.ndarray
    """Of each trial: its number in an array of trials or 0, its first sample, its samples."""
    offsets: np.ndarray
    """Time of the first sample, in samples."""
    info: np.ndarray | None = None
    """Further columns: what else is known of each trial."""
    given: np.ndarray | None = None
    """The definition as the user gave it, while it still holds."""

    @classmethod
    def of_lengths(
        cls, lengths: Any, offsets: Any = None, info: Any = None, *, is_cube: bool = False
    ) -> "TrialTable":
        """Return trials that lie one after the other, or one beneath the other in a cube."""
        lengths = np.asarray(lengths)
        count = len(lengths)
        starts = np.zeros(count, int) if is_cube else np.cumsum(lengths) - lengths
        trials = np.arange(count) if is_cube else np.zeros(count, int)
        rows = np.column_stack([trials, starts, lengths]).astype(np.int64)
        return cls(rows, np.zeros(count) if offsets is None else np.array(offsets, float), info)

    @classmethod
    def of_definition(cls, definition: Any, n_samples: int) -> "TrialTable":
        """Return trials by their first sample, the sample behind the last one, and their offset."""
        table = np.atleast_2d(np.array(definition, float))
        if table.ndim != 2 or table.shape[1] < 3:
            raise InputError(
                "trialdefinition needs three columns: first sample, sample behind the last one, "
                f"offset. It has the shape {table.shape}."
            )
        starts, stops = table[:, 0].astype(int), table[:, 1].astype(int)
        if (starts < 0).any() or (stops > n_samples).any() or (stops < starts).any():
            raise InputError(
                f"trialdefinition reaches beyond the data, which have {n_samples} samples, or has "
                "a trial that ends before it begins."
            )
        rows = np.column_stack([np.zeros_like(starts), starts, stops - starts])
        return cls(rows, table[:, 2], table[:, 3:] if table.shape[1] > 3 else None, table)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> np.ndarray:
        """Samples of each trial."""
        return self.rows[:, 2]

    @property
    def is_equal(self) -> bool:
        """Whether all trials have the same number of samples."""
        return bool((self.lengths == self.lengths[0]).all()) if len(self) else True

    def definition(self) -> np.ndarray:
        """Return first sample, sample behind the last, and offset of each trial; then ``info``."""
        if self.given is not None:
            return self.given.copy()
        stops = np.cumsum(self.lengths)
        columns = [stops - self.lengths, stops, self.offsets]
        if self.info is not None:
            columns.append(self.info)
        return np.column_stack(columns).astype(float)

    def times(self, samplerate: float) -> list[np.ndarray]:
        """Return the times of the samples of each trial, in seconds."""
        return [
            (np.arange(length) + offset) / samplerate
            for length, offset in zip(self.lengths, self.offsets, strict=True)
        ]

    def intervals(self, samplerate: float) -> np.ndarray:
        """Return the time of the first and of the last sample of each trial."""
        last = self.offsets + np.maximum(self.lengths - 1, 0)
        return np.column_stack([self.offsets, last]) / samplerate

    def pick(self, index: np.ndarray | None) -> "TrialTable":
        """Return some of the trials; None for all."""
        if index is None:
            return self
        info = None if self.info is None else self.info[index]
        return TrialTable(self.rows[index], self.offsets[index], info)

    def cut(self, latency: Any, samplerate: float) -> "TrialTable":
        """Return the trials that cover a window in time, cut to it."""
        intervals = self.intervals(samplerate)
        window = find_window(latency, intervals)
        covers = (intervals[:, 0] <= window[0] + 1e-9) & (intervals[:, 1] >= window[1] - 1e-9)
        if not covers.any():
            raise InputError(f"latency={latency!r}: no trial covers all of it.")
        first, length = cut_latency(window, self.lengths, self.offsets, samplerate)
        rows = self.rows.copy()
        rows[:, 1] += first
        rows[:, 2] = length
        return replace(self, rows=rows, offsets=self.offsets + first).pick(np.flatnonzero(covers))
