"""Tell whether two calls are the same: function, arguments and data; or of the same kind.

The digest covers the code of a function with all that it uses from the user's
own modules, its defaults and closure, and its arguments. Installed packages
count by name and version. What changes where the code stands (file, line) does
not count, nor does the name of the user's function.
"""

import dis
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Collection, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from barrow.model.applied import Apply, leaves
from barrow.model.source import Source
from barrow.model.step import Step

FORMAT = b"barrow result 1"
# Of a larger array in a closure only some values count towards the kind of work.
MOST_BYTES = 2**22
SOME_ITEMS = 2**16


def identify(target: Source) -> list[str | None]:
    """Return what tells the data beneath a chain of steps from others, source by source."""
    return [leaf.read.identity() for leaf in leaves(target)]


def fingerprint(target: Source, identities: Sequence[str | None] | None = None) -> str | None:
    """Return the digest of a chain of steps, or None if its data cannot be told apart.

    Parameters
    ----------
    identities
        Of the data, if they are known from :func:`identify`.
    """
    found = identify(target) if identities is None else identities
    digest = _Digest()
    digest.feed(FORMAT)
    _feed_source(digest, target, iter(found))
    return digest.hex() if None not in found and digest.is_lasting else None


def kind_of_work(target: Source, facts: Any, *, cuttable: Collection[str] = ()) -> str | None:
    """Return the digest of a chain of steps on any data of one kind, or None if there is none.

    Parameters
    ----------
    facts
        All else that counts, such as the machine: plain values.
    cuttable
        Dimensions whose lengths do not count: of longer data there are more chunks, but
        each is as before.
    """
    digest = _Digest(most_bytes=MOST_BYTES)
    try:
        digest.feed(facts)
        _feed_kind(digest, target, frozenset(cuttable))
    except Exception:
        # Objects of any library are looked into, and some resent it. Nobody asked for this.
        return None
    return digest.hex() if digest.is_lasting else None


def _feed_kind(digest: "_Digest", source: Source, cuttable: frozenset[str]) -> None:
    if isinstance(source.read, Apply):
        _feed_step(digest, source.read.step)
        digest.feed(len(source.read.inputs))
        for below in source.read.inputs:
            _feed_kind(digest, below, cuttable)
        return
    reader = type(source.read)
    digest.feed((reader.__module__, reader.__qualname__, source.dtype.str, source.dims))
    digest.feed(tuple(source.grain.values()))
    digest.feed([(dim, n) for dim, n in source.lengths.items() if dim not in cuttable])


def _feed_source(digest: "_Digest", source: Source, identities: Iterator[str | None]) -> None:
    digest.feed((source.dims, source.shape, source.dtype.str))
    if not isinstance(source.read, Apply):
        digest.feed(next(identities))
        return
    _feed_step(digest, source.read.step)
    for below in source.read.inputs:
        _feed_source(digest, below, identities)


def _feed_step(digest: "_Digest", step: Step) -> None:
    digest.feed((step.func, step.kwargs, step.combine, step.border))
    digest.feed((tuple(step.whole), sorted(step.halo.items())))


class _Digest:
    """A hash over nested Python objects."""

    def __init__(self, most_bytes: float = float("inf")) -> None:
        self.is_lasting = True
        """Whether another process would get the same digest."""
        self._most_bytes = most_bytes
        self._hash = hashlib.blake2b(digest_size=16)
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []

    def hex(self) -> str:
        return self._hash.hexdigest()

    def feed(self, item: Any) -> None:
        """Add an object; one met before counts by its place, so that rings end."""
        self._hash.update(f"<{type(item).__module__}.{type(item).__qualname__}>".encode())
        if isinstance(item, (type(None), bool, int, float, complex, str, bytes, type(...))):
            self._hash.update(repr(item).encode(errors="surrogatepass"))
            return
        if id(item) in self._seen:
            self._hash.update(f"#{self._seen[id(item)]}".encode())
            return
        self._seen[id(item)] = len(self._seen)
        self._alive.append(item)
        for part in _parts(item):
            if part is _UNKNOWN:
                self.is_lasting = False
            elif isinstance(part, _Values):
                self._hash.update(part.content(self._most_bytes))
            elif isinstance(part, _Raw):
                self._hash.update(part.content)
            else:
                self.feed(part)
        self._hash.update(b".")


class _Raw:
    def __init__(self, content: Any) -> None:
        self.content = content


class _Values:
    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def content(self, most_bytes: float) -> Any:
        array = self._array
        if array.nbytes > most_bytes:
            array = array.flat[:: max(1, array.size // SOME_ITEMS)]
        return np.ascontiguousarray(array).view(np.uint8).data if array.size else b""


_GLOBAL_STEPS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}

# Stands for an object that cannot be told apart from another of its kind.
_UNKNOWN = object()


def _parts(item: Any) -> Iterator[Any]:
    """Yield what an object is made of."""
    if isinstance(item, (tuple, list)):
        yield from item
    elif isinstance(item, dict):
        for key in sorted(item, key=repr):
            yield key
            yield item[key]
    elif isinstance(item, (set, frozenset)):
        yield from sorted(item, key=repr)
    elif isinstance(item, np.ndarray) and not item.dtype.hasobject:
        yield item.shape
        yield item.dtype.str
        yield _Values(item)
    elif isinstance(item, (np.dtype, np.generic)):
        yield repr(item)
    elif isinstance(item, types.CodeType):
        yield from (item.co_code, item.co_names, item.co_varnames, item.co_freevars)
        yield from item.co_consts
    elif isinstance(item, types.FunctionType):
        yield from _function_parts(item)
    elif isinstance(item, functools.partial):
        yield from (item.func, item.args, item.keywords)
    elif isinstance(item, types.MethodType):
        yield from (item.__func__, item.__self__)
    elif isinstance(item, types.ModuleType):
        yield from (item.__name__, _version(item.__name__))
    elif isinstance(item, type):
        yield from _named(item)
        if not _is_installed(item.__module__):
            yield from sorted(
                ((name, value) for name, value in vars(item).items() if callable(value)),
                key=lambda pair: pair[0],
            )
    elif callable(getattr(item, "py_func", None)):  # a function compiled by Numba
        yield item.py_func
    elif callable(getattr(item, "__wrapped__", None)):  # a function with a cache
        yield item.__wrapped__
    elif isinstance(item, np.vectorize):
        yield dict(vars(item))
    elif _is_built_in(item):  # a ufunc, a C function
        yield from _named(item)
    else:
        yield from _object_parts(item)


def _is_built_in(item: Any) -> bool:
    """Return whether an object is a function without Python code: its name says all about it."""
    is_named = callable(item) and hasattr(item, "__name__")
    return is_named and not hasattr(type(item).__call__, "__code__")


def _function_parts(func: types.FunctionType) -> Iterator[Any]:
    if _is_installed(func.__module__ or ""):
        yield from _named(func)
        return
    yield func.__code__
    yield from (func.__defaults__, func.__kwdefaults__)
    names, closure = _names(func.__code__), _closure_of(func)
    yield from _used_of(closure, closure.keys(), names, set())
    yield from _used_of(func.__globals__, _global_names(func.__code__), names, set())


def _closure_of(func: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not bound yet
            found[name] = None
    return found


def _used_of(
    space: dict[str, Any], names: Set[str], attributes: Set[str], seen: set[int]
) -> Iterator[Any]:
    """Yield what these names mean there, and attributes of the user's own modules among them."""
    for name in sorted(names & space.keys()):
        value = space[name]
        yield name
        yield value
        is_module = isinstance(value, types.ModuleType)
        if is_module and id(value) not in seen and not _is_installed(value.__name__):
            seen.add(id(value))
            yield from _used_of(vars(value), attributes, attributes, seen)


def _names(code: types.CodeType) -> set[str]:
    """Return all names in a function, of variables and attributes alike."""
    return set(code.co_names).union(*map(_names, _codes_in(code)))


@functools.lru_cache(maxsize=1024)
def _global_names(code: types.CodeType) -> frozenset[str]:
    """Return the global variables that a function uses; an attribute may be called the same."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in _GLOBAL_STEPS}
    return frozenset(found).union(*map(_global_names, _codes_in(code)))


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    return (const for const in code.co_consts if isinstance(const, types.CodeType))


def _object_parts(item: Any) -> Iterator[Any]:
    yield type(item)
    state = getattr(item, "__dict__", None)
    if state:
        yield dict(state)
        return
    import cloudpickle

    try:
        yield _Raw(cloudpickle.dumps(item))
    except Exception:
        yield _UNKNOWN


def _named(item: Any) -> Iterator[Any]:
    module = getattr(item, "__module__", None) or ""
    yield getattr(item, "__qualname__", item.__name__)
    # A script's functions are the same whether it was started or imported.
    if _is_installed(module):
        yield from (module, _version(module))


def _version(module: str) -> str | None:
    root = sys.modules.get(module.partition(".")[0])
    return getattr(root, "__version__", None)


@functools.cache
def _is_installed(module: str) -> bool:
    """Return whether a module belongs to Python or an installed package, not to the user."""
    if module == "__main__" or not module:
        return False
    root = sys.modules.get(module.partition(".")[0])
    path = getattr(root, "__file__", None)
    if path is None:
        # A module that is not there was the user's: a function keeps its name when it travels.
        return root is not None and root.__name__ in sys.builtin_module_names
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    is_elsewhere = {"site-packages", "dist-packages"} & set(Path(path).parts)
    return bool(is_elsewhere) or any(path.startswith(place) for place in places)
