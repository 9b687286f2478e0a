"""The face of coffea: ``Runner``, executors, ``ProcessorABC``, for code that is already written."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from barrow.errors import InputError
from barrow.fields.collider.analysis import OnError
from barrow.fields.collider.api import run
from barrow.fields.collider.runs import Run
from barrow.fields.collider.schemas import NanoAODSchema, find_schema


class ProcessorABC(ABC):
    """What is done with events: a base class, for those who like one."""

    @abstractmethod
    def process(self, events: Any) -> Any:
        """Return what is known of some events: something that can be added up."""

    def postprocess(self, accumulator: Any) -> Any:
        """Return the output, made of the sum."""
        return accumulator


@dataclass(frozen=True)
class IterativeExecutor:
    """One chunk after the other, in this process."""

    status: bool = True


@dataclass(frozen=True)
class FuturesExecutor:
    """Worker processes on this machine."""

    workers: int | None = None
    status: bool = True


@dataclass(frozen=True)
class DaskExecutor:
    """The workers of a Dask client."""

    client: Any = None
    status: bool = True


@dataclass
class Runner:
    """Applies processors to filesets, called as coffea's is.

    Parameters
    ----------
    executor
        None to let barrow decide by measurement; or an executor, of barrow or of coffea,
        of which only the place counts: this process, processes, or a Dask client.
    schema
        A schema of barrow, or one of coffea for its own events.
    savemetrics
        Whether a call returns ``(output, metrics)``.
    chunksize, maxchunks
        As for :func:`barrow.collider.run`.
    skipbadfiles
        Whether to leave out files that cannot be read or processed, as a whole. Also a
        tuple of exceptions, as coffea allows it: it is taken for True.

    Examples
    --------
    >>> import tempfile
    >>> from barrow import collider
    >>> path = collider.write_nanoaod(f"{tempfile.mkdtemp()}/few.root", 1000)
    >>> runner = collider.Runner(savemetrics=True)
    >>> count = lambda events: {"events": len(events)}
    >>> output, metrics = runner({"data": [path]}, "Events", processor_instance=count)
    >>> output, metrics["entries"]
    ({'events': 1000}, 1000)
    """

    executor: Any = None
    schema: Any = NanoAODSchema
    savemetrics: bool = False
    chunksize: int | None = None
    maxchunks: int | None = None
    skipbadfiles: bool | Collection[type] = False
    memory: str | int | None = None
    quiet: bool = False
    pre_executor: Any = None
    align_clusters: bool = True
    """Always so; here for code that sets it."""
    format: str = "root"
    """Found by itself; here for code that sets it."""
    metadata_cache: Any = None
    xrootdtimeout: int | None = None
    last: Run | None = None
    """What the last call did."""

    def __call__(
        self,
        fileset: Any,
        *given: Any,
        processor_instance: Any = None,
        treename: str | None = None,
        **more: Any,
    ) -> Any:
        """Return the output; with ``savemetrics`` also the metrics.

        The processor and the name of the tree may be given by name or by place, in any order.
        """
        for value in given:
            if isinstance(value, str) and treename is None:
                treename = value
            elif processor_instance is None:
                processor_instance = value
            else:
                raise InputError(f"{value!r} is one argument too many.")
        processor = (
            processor_instance if processor_instance is not None else more.pop("processor", None)
        )
        if more:
            raise InputError(f"{', '.join(more)}: not known here.")
        if processor is None:
            raise InputError("There is no processor: give processor_instance=YourProcessor().")
        policy: OnError = "skip-file" if self.skipbadfiles else "stop"
        with _where(self.executor) as cluster:
            self.last = run(
                processor,
                fileset,
                treename=treename or "Events",
                schema=find_schema(self.schema),
                on_error=policy,
                chunksize=self.chunksize,
                maxchunks=self.maxchunks,
                memory=self.memory,
                cluster=cluster,
                quiet=self.quiet,
            )
        if self.savemetrics:
            return self.last.output, self.last.metrics
        return self.last.output

    run = __call__


def _where(executor: Any) -> Any:
    """Return what to give as ``cluster=``, to be entered, for an executor of barrow or coffea."""
    from contextlib import nullcontext

    name = type(executor).__name__
    if executor is None:
        return nullcontext(None)
    if name == "IterativeExecutor":
        return nullcontext(False)
    if name == "DaskExecutor":
        return nullcontext(executor.client)
    if name == "FuturesExecutor":
        if not executor.workers:
            return nullcontext(None)
        from barrow.api import cluster

        return cluster("local", workers=int(executor.workers), threads=1)
    raise InputError(
        f"executor={executor!r} is not known: give None, or an IterativeExecutor, FuturesExecutor "
        "or DaskExecutor."
    )
