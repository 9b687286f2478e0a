"""Join a process of a program to the watching: what is hooked into Dask, and when.

Nothing is imported for the program's sake: hooks wait until it imports Dask itself, so that a
program which sets Dask up by its environment finds everything as it left it.
"""

import functools
import importlib.abc
import importlib.util
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

from barrow.recording import spans
from barrow.recording.environment import describe_environment
from barrow.recording.sending import LogHandler, Sender

PLACE_VARIABLE = "BARROW_WATCH_PLACE"
"""Names the folder of the recorder's socket to the hook of a new interpreter."""
_SETTINGS = ("array", "dataframe", "optimization", "scheduler", "num_workers")
_DISTRIBUTED_SETTINGS = ("worker", "nanny", "scheduler", "comm", "deploy", "client")
_SECRET = ("key", "cert", "ca-file", "security", "password", "token", "auth")


class Watched:
    """This process, as one that is watched."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.host = socket.gethostname()
        self.sender = Sender(place)
        self._undo: list[Callable[[], None]] = [spans.listen(self._tell)]
        self._finder: _Finder | None = None

    def _tell(self, *row: Any) -> None:
        self.sender.put(*row)

    def hook(self) -> None:
        """Hook into the parts of Dask that are loaded, and into the others when they are."""
        hooks = {
            "dask.callbacks": self._hook_callbacks,
            "dask.highlevelgraph": self._hook_layers,
            "distributed": self._hook_distributed,
        }
        waiting: dict[str, Callable[[ModuleType], None]] = {}
        for name, hook in hooks.items():
            module = sys.modules.get(name)
            if module is not None and not _is_initialising(module):
                hook(module)
            else:
                waiting[name] = hook
        if waiting:
            self._finder = _Finder(waiting, self.sender.note_error)
            sys.meta_path.insert(0, self._finder)

    def unhook(self) -> None:
        """Take all hooks out."""
        if self._finder is not None:
            with suppress(ValueError):
                sys.meta_path.remove(self._finder)
        while self._undo:
            with suppress(Exception):
                self._undo.pop()()
        self.sender.flush()

    def _hook_callbacks(self, module: ModuleType) -> None:  # noqa: ARG002
        from barrow.recording.local_tasks import LocalTasks

        callback = LocalTasks(self.sender)
        callback.register()
        self._undo.append(callback.unregister)

    def _hook_layers(self, module: ModuleType) -> None:
        graph = module.HighLevelGraph  # type: ignore[attr-defined]
        original = graph.__dict__["from_collections"]
        call = original.__func__

        def from_collections(cls: type, name: str, *args: Any, **kwargs: Any) -> Any:
            spans.note_layer(name)
            return call(cls, name, *args, **kwargs)

        graph.from_collections = classmethod(from_collections)
        self._undo.append(lambda: setattr(graph, "from_collections", original))

    def _hook_distributed(self, module: ModuleType) -> None:  # noqa: ARG002
        import dask

        self._follow_starts()
        handler = LogHandler(self.sender)
        logger = logging.getLogger("distributed")
        logger.addHandler(handler)
        self._undo.append(lambda: logger.removeHandler(handler))
        self.sender.put("fact", "settings", describe_settings(dask.config.config))

    def _follow_starts(self) -> None:
        """Watch schedulers and clients of this process as soon as they have started.

        Where Dask loads the modules that its settings name. Not by these settings: Dask hands
        them on to workers, and there our modules may not be.
        """
        from distributed import preloading

        original = preloading.process_preloads

        @functools.wraps(original)
        def process_preloads(server: Any, *args: Any, **kwargs: Any) -> Any:
            loaded = original(server, *args, **kwargs)
            begin = loaded.start

            async def start() -> None:
                await begin()
                from barrow.recording.attaching import attach

                await attach(server)

            setattr(loaded, "start", start)  # noqa: B010 - it is a method of all others
            return loaded

        setattr(preloading, "process_preloads", process_preloads)  # noqa: B010
        self._undo.append(lambda: setattr(preloading, "process_preloads", original))


_watched: Watched | None = None


def join(place: str) -> Watched:
    """Make this process one that is watched."""
    global _watched
    _watched = Watched(place)
    _watched.hook()
    return _watched


def leave() -> None:
    """End the watching of this process."""
    global _watched
    if _watched is not None:
        _watched.unhook()
    _watched = None


def current() -> Watched | None:
    """Return this process as one that is watched, if it is."""
    return _watched


def join_from_environment() -> None:
    """Join if ``barrow watch`` has started this interpreter; its children are left alone."""
    place = os.environ.pop(PLACE_VARIABLE, None)
    if place:
        watched = join(place)
        # Of this environment: that of the command may be another one.
        for name, value in describe_environment().items():
            watched.sender.put("fact", name, value)


def describe_settings(config: Any) -> dict[str, Any]:
    """Return the settings of Dask that shape a run, without what could be a secret."""
    found = {name: config[name] for name in _SETTINGS if name in config}
    distributed = config.get("distributed", {})
    found["distributed"] = {n: distributed[n] for n in _DISTRIBUTED_SETTINGS if n in distributed}
    return dict(_without_secrets(found))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            str(name): _without_secrets(part)
            for name, part in value.items()
            if not any(word in str(name).lower() for word in _SECRET)
        }
    if isinstance(value, (list, tuple)):
        return [_without_secrets(part) for part in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def _is_initialising(module: ModuleType) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


class _Finder(importlib.abc.MetaPathFinder):
    """Calls a hook after a module was imported by somebody."""

    def __init__(
        self,
        hooks: dict[str, Callable[[ModuleType], None]],
        on_error: Callable[[str, BaseException], None],
    ) -> None:
        self._hooks = hooks
        self._on_error = on_error
        self._busy = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> Any:
        """Find a module as Python would, and have its hook called when it is loaded."""
        if fullname not in self._hooks or getattr(self._busy, "is_on", False):
            return None
        self._busy.is_on = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy.is_on = False
        if spec is None or spec.loader is None:
            return None
        hook = self._hooks.pop(fullname)
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            loader.exec_module = execute  # type: ignore[method-assign]
            execute(module)
            try:
                hook(module)
            except Exception as error:
                self._on_error(f"a hook of {fullname}", error)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        del path, target
        return spec
