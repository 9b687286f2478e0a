"""What a report says: plain data, ready to be shown as a page, as text or as JSON.

Times within a run are seconds since it began. Nothing here knows how it will look.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from barrow.model.finding import Finding
from barrow.reporting.figure import Figure

FORMAT = 1
"""Version of ``report.json``."""

Status = Literal["done", "failed", "interrupted", "killed", "running", "unknown"]
MarkKind = Literal["death", "pause", "spill", "other"]
Columns = Mapping[str, list[Any]]


@dataclass(frozen=True)
class Row:
    """A heading and what is to be said about it."""

    heading: str
    text: str
    value: float | None = None
    """The same as a bare number: seconds, bytes or a count."""


@dataclass(frozen=True)
class Compared:
    """One thing that was predicted and measured."""

    heading: str
    predicted: str
    measured: str
    factor: float | None = None
    """Measured divided by predicted."""


@dataclass(frozen=True)
class Quantiles:
    """How a number is spread over the tasks of a step."""

    least: float
    median: float
    high: float
    """95 of 100 lie below."""
    most: float


@dataclass(frozen=True)
class StepRow:
    """All tasks of one step."""

    name: str
    tasks: int
    failed: int
    total_seconds: float
    computing_share: float
    """Of its time; the rest is reading, waiting for data, and writing."""
    seconds: Quantiles | None
    peak_bytes: Quantiles | None


@dataclass(frozen=True)
class SpanRow:
    """A named part of the program."""

    name: str
    depth: int
    started: float
    seconds: float
    has_ended: bool
    tasks: int
    task_seconds: float


@dataclass(frozen=True)
class EventRow:
    """Something that happened on the way."""

    time: float
    kind: str
    message: str
    process: str = ""
    count: int = 1
    """How many of this kind, when the others were left out."""


@dataclass(frozen=True)
class Timeline:
    """Which worker did what, and when."""

    lanes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """What has a colour: steps, and for chunks of barrow's own the phases of a task."""
    tasks: Columns = field(default_factory=dict)
    """Tasks that are drawn one by one: lane, start, seconds, group, label, ..."""
    blocks: Columns = field(default_factory=dict)
    """All others, put together: lane, start, seconds, group, tasks, busy (a share)."""
    total: int = 0
    has_others: bool = False
    """Whether the last group is made of all steps that have no colour of their own."""


@dataclass(frozen=True)
class Series:
    """Memory of one process over time."""

    label: str
    time: list[float]
    bytes: list[float]
    limit_bytes: float | None = None


@dataclass(frozen=True)
class Mark:
    """A moment worth a sign in the figure of memory."""

    time: float
    bytes: float | None
    kind: MarkKind
    label: str
    message: str


@dataclass(frozen=True)
class Memory:
    """How much every process held."""

    series: tuple[Series, ...] = ()
    others: int = 0
    """Processes that share the last series: the largest of them at each moment."""
    marks: tuple[Mark, ...] = ()
    marks_left_out: int = 0
    is_sampled: bool = True
    """False if all that is known is what processes held after their tasks."""


@dataclass(frozen=True)
class Pairs:
    """Predicted and measured, for some or all tasks."""

    predicted: list[float]
    measured: list[float]
    label: list[str]
    total: int


@dataclass(frozen=True)
class Prediction:
    """How right the plan was."""

    rows: tuple[Compared, ...] = ()
    seconds: Pairs | None = None
    peak_bytes: Pairs | None = None
    tasks_at_once: int = 1
    """Tasks in one process: the measured peak is of all of them together."""


@dataclass(frozen=True)
class Outlook:
    """What more workers would bring."""

    rows: tuple[Row, ...]
    figure: Figure


@dataclass(frozen=True)
class Content:
    """All that a report says about one run."""

    name: str
    kind: str
    status: Status
    began: float
    """Seconds since the epoch."""
    seconds: float
    headline: str
    tiles: tuple[Row, ...] = ()
    """The few numbers to see first."""
    problems: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    prediction: Prediction | None = None
    timeline: Timeline = field(default_factory=Timeline)
    memory: Memory = field(default_factory=Memory)
    outlook: Outlook | None = None
    steps: tuple[StepRow, ...] = ()
    spans: tuple[SpanRow, ...] = ()
    metrics: tuple[Row, ...] = ()
    events: tuple[EventRow, ...] = ()
    skipped: tuple[Row, ...] = ()
    logs: tuple[EventRow, ...] = ()
    plan: tuple[tuple[str, tuple[Row, ...]], ...] = ()
    """Stages by their heading; empty for one that stands alone."""
    machine: tuple[Row, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    reproduce: str = ""
    left_out: tuple[str, ...] = ()
    """What the figures and tables do not show, in sentences."""

    def to_json(self) -> str:
        """Return all of it as JSON text."""
        return json.dumps({"barrow_report": FORMAT, **asdict(self)}, ensure_ascii=False)
