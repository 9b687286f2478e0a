"""The call that began a run, kept in its folder: the run can be finished without the script.

One line of JSON says what is needed to open it; the steps and the opened sources
follow, pickled. Functions of a script are in there as they are, those of modules by
their name. Data in memory are not kept, nor is anything else that is large.

Opening it runs what is in it, so it is opened only if nobody but the user can have
written it.
"""

import io
import json
import os
import pickle
import platform
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from barrow.errors import InputError, OutputError, TravelError
from barrow.model.applied import leaves
from barrow.model.plan import Plan
from barrow.model.source import Source
from barrow.running.fingerprint import fingerprint, identify
from barrow.running.folders import RunFolder, find_run
from barrow.units import format_bytes

FORMAT = 1
MOST_BYTES = 2**20
"""What is larger holds data, and those are kept where they are."""
AGAIN = "Make the same call again, where your data are: it goes on where the run stopped."


@dataclass(frozen=True)
class Call:
    """Steps and sources of a run, and what tells whether they are still the same."""

    origin: Source
    """All steps on the data themselves."""
    identities: Sequence[str | None]
    """Of each source, see :meth:`~barrow.model.source.Reader.identity`."""
    key: str | None
    """Under which the result is known; None if it cannot be told from others."""
    options: Mapping[str, Any] = field(default_factory=dict)
    is_stage: bool = False
    """Whether it is a part of a call, which is kept as a whole elsewhere."""
    content: bytes | None = field(default=None, repr=False)
    """As it was saved, if it was."""

    @classmethod
    def of(cls, plan: Plan) -> "Call":
        """Return the call that a plan was made for; the data are looked at."""
        assert plan.target is not None
        # A chain in stages makes the same result as one that is fused.
        origin = plan.options.get("origin", plan.target)
        identities = identify(origin)
        options = {
            "memory": plan.options.get("memory"),
            "on_error": plan.options.get("on_error", "stop"),
            "may_resize": plan.options.get("may_resize", True),
            "is_parallel": plan.options.get("cluster") is not False,
        }
        return cls(origin, identities, fingerprint(origin, identities), options)

    def save(self, folder: RunFolder) -> None:
        """Keep the call in the folder of its run; if that cannot be done, why."""
        if self.key is not None and not self.is_stage:
            _write(folder.call_path, self.content or self._pack())
        folder.key_path.write_text(self.key or "")

    def _pack(self) -> bytes:
        content, problem, steps = b"", None, None
        try:
            content = _pickle(self.origin)
            # What is opened again later is compared with what is opened now.
            steps = _digest_steps(pickle.loads(content))
        except _TooLargeError:
            problem = (
                f"Its data lie in memory, or its function holds more than "
                f"{format_bytes(MOST_BYTES)}, which is not kept."
            )
        except Exception as error:
            # Any object of the user's may refuse to be pickled, in any way it likes.
            problem = f"Its function or data cannot be kept: {error}."
        header = {
            "barrow_call": FORMAT,
            "python": _python_version(),
            "search_path": [os.path.abspath(entry) for entry in sys.path],
            "options": dict(self.options),
            "identities": list(self.identities),
            "steps": steps,
            "problem": problem,
        }
        return json.dumps(header, default=str).encode() + b"\n" + content


@contextmanager
def importable(folder: RunFolder) -> Iterator[None]:
    """Let modules be found that the script of an unfinished run could import."""
    header, _ = _split(folder, _read(folder))
    before = list(sys.path)
    # First, as they were for the script.
    sys.path[:0] = [entry for entry in header["search_path"] if entry not in before]
    try:
        yield
    finally:
        sys.path[:] = before


@contextmanager
def opened_call(folder: RunFolder) -> Iterator[Call]:
    """Open the call that began an unfinished run, or say why it cannot be made again."""
    saved = _read(folder)
    header, content = _split(folder, saved)
    if header["problem"] is not None:
        raise TravelError(
            f"The run in {folder.store} cannot be finished without its script. {header['problem']} "
            f"{AGAIN}"
        )
    if header["python"] != _python_version():
        raise TravelError(
            f"The run in {folder.store} was begun with Python {header['python']}, and this is "
            f"{_python_version()}. Use that one, or make the same call again."
        )
    with importable(folder):
        origin = _unpickle(folder, content)
        _check_data(folder, origin, header["identities"])
        if _digest_steps(origin) != header["steps"]:
            raise InputError(
                f"'{origin.name}' has changed since the run in {folder.store} began: its code, "
                "what it uses from your modules, or the version of a package. What was done does "
                "not fit any more. Undo the change, or make the call again: it begins anew."
            )
        key = folder.read_key()
        yield Call(origin, header["identities"], key, header["options"], content=saved)


def describe_going_on(to: str | PathLike[str], *, may_resume: bool = True) -> str | None:
    """Return how an unfinished run is taken up again; None if it cannot be.

    Parameters
    ----------
    may_resume
        Whether its own call would take it up.
    """
    ways = ["The same call again goes on where this one stopped"] if may_resume else []
    try:
        folder = find_run(to)
        if folder.is_finished or not folder.read_key():
            return None
        header, _ = _split(folder, _read(folder))
        if header["problem"] is None:
            ways.append(f"{'or' if ways else 'To go on'}: barrow resume {shlex.quote(str(to))}")
    except InputError:
        return None
    except OutputError:
        pass  # it was not kept
    return "; ".join(ways) or None


def _digest_steps(origin: Source) -> str | None:
    return fingerprint(origin, [""] * len(leaves(origin)))


def _check_data(folder: RunFolder, origin: Source, identities: Sequence[str | None]) -> None:
    """Refuse data that are not what they were."""
    pairs = zip(leaves(origin), identify(origin), identities, strict=True)
    changed = [source.name for source, now, then in pairs if now != then]
    if changed:
        names = ", ".join(map(repr, changed))
        raise InputError(
            f"The data have changed or are gone since the run in {folder.store} began: {names}. "
            "What was done does not fit any more. Bring them back as they were, or make the call "
            "again: it begins anew."
        )


def _read(folder: RunFolder) -> bytes:
    """Return what was saved, if nobody else can have written it."""
    path = folder.call_path
    if not folder.read_key():
        raise OutputError(
            f"The run in {folder.store} had not begun yet, or its data cannot be told from others. "
            "Make its call again."
        )
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise OutputError(
            f"{folder.store} holds no call that could be made again. {AGAIN}"
        ) from None
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error.strerror}.") from None
    with open(file, "rb") as opened:
        for status in (os.fstat(file), os.stat(folder.root)):
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise OutputError(
                    f"{path} belongs to somebody else, or others may write there. It holds code, "
                    f"which is run only if it is yours alone. {AGAIN}"
                )
        return opened.read()


def _split(folder: RunFolder, saved: bytes) -> tuple[dict[str, Any], bytes]:
    line, _, content = saved.partition(b"\n")
    try:
        header: dict[str, Any] = json.loads(line)
        if header["barrow_call"] == FORMAT:
            return header, content
    except (ValueError, KeyError, TypeError):
        pass
    raise OutputError(f"{folder.call_path} was saved by another version of barrow. {AGAIN}")


def _unpickle(folder: RunFolder, content: bytes) -> Source:
    try:
        origin: Source = pickle.loads(content)
    except ImportError as error:
        raise TravelError(
            f"The run in {folder.store} needs what cannot be imported here: {error}. Start barrow "
            "with the Python of the script, in its folder, or make the same call again."
        ) from error
    except Exception as error:
        raise TravelError(
            f"What the run in {folder.store} works on cannot be opened here: "
            f"{type(error).__name__}: {error}. {AGAIN}"
        ) from error
    return origin


class _TooLargeError(Exception):
    pass


class _ShortFile(io.BytesIO):
    """Refuses to become large: pickling a large array ends there, before it is copied."""

    def write(self, block: Any) -> int:
        if self.tell() + memoryview(block).nbytes > MOST_BYTES:
            raise _TooLargeError
        return super().write(block)


def _pickle(origin: Source) -> bytes:
    import cloudpickle

    file = _ShortFile()
    cloudpickle.dump(origin, file)
    return file.getvalue()


def _write(path: Path, content: bytes) -> None:
    """Keep the call if there is room: the result can be made without it."""
    beside = path.with_suffix(".new")
    try:
        beside.unlink(missing_ok=True)
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(file, "wb") as opened:
            opened.write(content)
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _python_version() -> str:
    return ".".join(platform.python_version_tuple()[:2])
