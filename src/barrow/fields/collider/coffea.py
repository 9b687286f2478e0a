"""Events of coffea itself, for processors that need what only its classes can do."""

from collections.abc import Mapping
from typing import Any

from barrow.errors import InputError
from barrow.fields.collider.files import EventFile
from barrow.fields.collider.parquet import ParquetFile
from barrow.fields.collider.rootfiles import TreeFile


class Touched:
    """Knows which columns coffea has read."""

    def __init__(self, log: list[Any]) -> None:
        self._log = log

    @property
    def touched(self) -> set[str]:
        """Columns that were asked for."""
        return {str(getattr(entry, "branch", entry)) for entry in self._log}


def make_nanoevents(
    file: EventFile, start: int, stop: int, schema: type, metadata: Mapping[str, Any]
) -> tuple[Any, Touched]:
    """Return some events of an open file as coffea's NanoEvents."""
    try:
        from coffea.nanoevents import NanoEventsFactory
    except ImportError:
        raise InputError(
            f"schema={schema.__name__} needs coffea, which is not installed. Use schema='nanoaod', "
            "or: pip install coffea"
        ) from None
    log: list[Any] = []
    shared: dict[str, Any] = {
        "schemaclass": schema,
        "metadata": dict(metadata),
        "access_log": log,
        "mode": "virtual",
        "entry_start": start,
        "entry_stop": stop,
    }
    if isinstance(file, TreeFile):
        factory = NanoEventsFactory.from_root(file.root, treepath=file.tree, **shared)
    elif isinstance(file, ParquetFile):
        factory = NanoEventsFactory.from_parquet(file.path, **shared)
    else:
        raise InputError(
            f"coffea cannot read {file.path}: it is an RNTuple. Use schema='nanoaod' for it."
        )
    return factory.events(), Touched(log)
