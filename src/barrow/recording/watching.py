"""Watch a program: start a recorder beside it, and say at the end what it took."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import barrow
from barrow.errors import InputError, OutputError
from barrow.recording import joining
from barrow.recording.environment import describe_environment
from barrow.recording.going import announced
from barrow.recording.reading import Record
from barrow.recording.recorder import SOCKET_NAME, Recorder, open_listener
from barrow.recording.rendering import tell_command, write_command
from barrow.recording.sending import SEND_SECONDS, Sender, clean
from barrow.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    import pandas

START_SECONDS = 30.0
HOOK = Path(__file__).parent / "hook"
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_SENT_BY_THE_KERNEL = 128


@dataclass(frozen=True, eq=False)
class Watched:
    """What was kept of a program that was watched.

    Its numbers can be asked for at any time; they are final when the program is over.
    """

    folder: Path
    """Holds ``record.sqlite`` and, at the end, ``metrics.json``."""

    @property
    def record(self) -> Record:
        """All that was kept, as tables."""
        return Record(self.folder / "record.sqlite")

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Numbers of the program as a whole: tasks, seconds, bytes, peak memory."""
        return self.record.metrics

    @property
    def steps(self) -> "pandas.DataFrame":
        """The same for each step: one row for each name of Dask's tasks."""
        return self.record.steps


class Watch:
    """Watches this process while a block of code runs; see :func:`barrow.watch`."""

    def __init__(
        self, folder: str | PathLike[str], on_end: Callable[[Path], None] | None = None
    ) -> None:
        self._folder = make_folder(folder)
        self._on_end = on_end

    def __enter__(self) -> Watched:
        if joining.current() is not None:
            raise InputError("This program is being watched already: one watch at a time.")
        self._place = tempfile.mkdtemp(prefix="barrow-watch-")
        write_command(self._place, tell_command(self._folder))
        self._recorder = _start_recorder(self._folder, self._place)
        self._note = announced(self._folder / "record.sqlite")
        self._note.__enter__()
        watched = joining.join(self._place)
        watched.sender.put("hello", {"pid": os.getpid(), "kind": "client"})
        for name, value in {**describe_program(sys.argv), **describe_environment()}.items():
            watched.sender.put("fact", name, value)
        _for_live_clients("watch_client", watched)
        return Watched(self._folder)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None = None, *_: object
    ) -> None:
        watched = joining.current()
        if watched is None:
            return
        if _for_live_clients("unwatch_client", None):
            time.sleep(3 * SEND_SECONDS)  # rows may be on their way from another process
        joining.leave()
        status = "done"
        if kind is not None:
            status = "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
            watched.sender.put("fact", "error", clean(f"{kind.__name__}: {error}"))
        watched.sender.put("done", {"status": status, "ended": time.time()})
        watched.sender.close()
        try:
            self._recorder.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self._recorder.kill()
        shutil.rmtree(self._place, ignore_errors=True)
        self._note.__exit__(None, None, None)
        finish(self._folder, self._on_end)


def watch_command(
    arguments: Sequence[str],
    folder: str | PathLike[str],
    on_end: Callable[[Path], None] | None = None,
    *,
    python: str = sys.executable,
    attend: Callable[[Sender], AbstractContextManager[object]] = nullcontext,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run a Python program in a process of its own, watch it, and return its exit status.

    Parameters
    ----------
    arguments
        What would follow ``python`` on the command line.
    on_end
        Called with the folder when all is written.
    python
        The interpreter to run it; barrow need not be installed there.
    attend
        Called with what takes rows for the record; goes on beside the program, in this process.
    environment
        Variables for the program on top of those of this process.
    """
    root = make_folder(folder)
    place = tempfile.mkdtemp(prefix="barrow-watch-")
    write_command(place, tell_command(root))
    listener = open_listener(place)
    variables = {**os.environ, **(environment or {})}
    path = variables.get("PYTHONPATH", "")
    variables["BARROW_WATCH_PYTHONPATH"] = path
    # Barrow itself must be found by the interpreter before anything else is.
    variables["PYTHONPATH"] = os.pathsep.join([str(HOOK), *([path] if path else [])])
    variables[joining.PLACE_VARIABLE] = place
    # From here on signals are for the program: those sent to us alone are handed on.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    try:
        program = subprocess.Popen(
            [python, *arguments],
            env=variables,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED),
        )
        recorder = Recorder(root, listener, program.pid)
        recorder.describe(describe_program(arguments))
        with announced(root / "record.sqlite"), attend(Sender(place)):
            recorder.run(lambda: _is_over(program))
        code = program.wait()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        recorder.describe(
            {
                "status": name_status(code),
                "ended": time.time(),
                "exit_status": code,
                "cpu_seconds": usage.ru_utime + usage.ru_stime,
            }
        )
        recorder.close()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    finish(root, on_end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    return code


def finish(folder: Path, on_end: Callable[[Path], None] | None = None) -> None:
    """Write the numbers of a record beside it, and let others add theirs."""
    metrics = Record(folder / "record.sqlite").metrics
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    if on_end is not None:
        on_end(folder)


def make_folder(folder: str | PathLike[str]) -> Path:
    """Return a new folder for a record, or an empty one."""
    root = Path(folder).absolute()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise OutputError(f"folder={str(folder)!r} exists and is not empty. Choose another.")
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{root} cannot be made: {error.strerror}. Choose another.") from error
    return root


def name_status(code: int) -> str:
    """Return in a word how a program ended.

    Examples
    --------
    >>> [name_status(code) for code in (0, 1, -2, 130, -9)]
    ['done', 'failed', 'interrupted', 'interrupted', 'killed']
    """
    if code in (-signal.SIGINT, 128 + signal.SIGINT):
        return "interrupted"
    return "done" if code == 0 else "failed" if code > 0 else "killed"


def describe_program(command: Sequence[str]) -> dict[str, Any]:
    """Return what is worth knowing of a program and of the machine before it begins."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "command": list(command),
        "folder": os.getcwd(),
        "machine": {
            "cores": len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count(),
            "memory_bytes": pages * size,
        },
    }


def _start_recorder(folder: Path, place: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": _needed_path()}
    # Without the user's site: it starts in a moment and stays small.
    command = [sys.executable, "-S", "-m", "barrow.recording.recorder"]
    recorder = subprocess.Popen(
        [*command, str(folder), place, str(os.getpid())],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert recorder.stdout is not None
    with recorder.stdout:
        if recorder.stdout.readline() != b"ready\n":
            recorder.kill()
            raise OutputError(f"Nothing can be recorded in {folder}: the recorder did not start.")
    assert os.path.exists(os.path.join(place, SOCKET_NAME))
    return recorder


def _needed_path() -> str:
    folders = [str(Path(barrow.__file__).parent.parent)]
    if sys.platform != "linux" and (spec := find_spec("psutil")) and spec.origin:
        folders.append(str(Path(spec.origin).parent.parent))
    return os.pathsep.join(folders)


def _for_live_clients(verb: str, watched: Any) -> bool:
    """Begin or cease to watch clusters that are up; tell whether one is in another process."""
    if "distributed" not in sys.modules:
        return False
    from distributed.client import _global_clients

    from barrow.recording import attaching

    is_elsewhere = False
    for client in list(_global_clients.values()):
        if client.status != "running":
            continue
        arguments = (client,) if watched is None else (client, watched)
        try:
            answer = client.sync(getattr(attaching, verb), *arguments, callback_timeout=30)
            is_elsewhere = is_elsewhere or bool(answer)
        except Exception as error:
            current = watched or joining.current()
            if current is not None:
                current.sender.note_error(verb, error)
    return is_elsewhere


def _is_over(program: "subprocess.Popen[bytes]") -> bool:
    """Hand signals on, and tell whether the program has ended."""
    # Not on macOS: there a terminal's signals reach the program, and others have to be sent to it.
    take = getattr(signal, "sigtimedwait", lambda *_: None)
    while True:
        info = take(_FORWARDED, 0)
        if info is None:
            return program.poll() is not None
        # What is typed on a terminal goes to all its processes already.
        if info.si_code != _SENT_BY_THE_KERNEL:
            with suppress(ProcessLookupError):
                program.send_signal(info.si_signo)


def summarise(run: Watched) -> str:
    """Return in two lines what a program took, and where its record is."""
    m = run.metrics
    return (
        f"barrow: {m['status']}: {format_count(m['tasks'], 'task')} in "
        f"{format_seconds(m['wall_seconds'])}, {format_seconds(m['cpu_seconds'])} of CPU, "
        f"at most {format_bytes(m['peak_bytes'])} in all processes together\n"
        f"barrow: record in {run.folder}"
    )
