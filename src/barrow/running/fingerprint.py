"""Tell whether two calls are the same: function, arguments and data.

The digest covers the code of a function with all that it uses from the user's
own modules, its defaults and closure, and its arguments. Installed packages
count by name and version. What changes where the code stands (file, line) does
not count.
"""

import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from barrow.model.applied import Apply
from barrow.model.source import Source

FORMAT = b"barrow result 1"


def fingerprint(target: Source) -> str | None:
    """Return the digest of a chain of steps, or None if its data cannot be told apart."""
    digest = _Digest()
    digest.feed(FORMAT)
    return digest.hex() if _feed_source(digest, target) else None


def _feed_source(digest: "_Digest", source: Source) -> bool:
    digest.feed((source.dims, source.shape, source.dtype.str))
    if not isinstance(source.read, Apply):
        identity = source.read.identity()
        digest.feed(identity)
        return identity is not None
    step = source.read.step
    digest.feed((step.func, step.kwargs, step.combine, step.border))
    digest.feed((tuple(step.whole), sorted(step.halo.items())))
    return all(_feed_source(digest, below) for below in source.read.inputs)


class _Digest:
    """A hash over nested Python objects."""

    def __init__(self) -> None:
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
            if isinstance(part, _Raw):
                self._hash.update(part.content)
            else:
                self.feed(part)
        self._hash.update(b".")


class _Raw:
    def __init__(self, content: Any) -> None:
        self.content = content


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
        yield _Raw(np.ascontiguousarray(item).view(np.uint8).data if item.size else b"")
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
    elif callable(item) and hasattr(item, "__name__"):  # built in: a ufunc, a C function
        yield from _named(item)
    else:
        yield from _object_parts(item)


def _function_parts(func: types.FunctionType) -> Iterator[Any]:
    yield from _named(func)
    if _is_installed(func.__module__):
        return
    yield func.__code__
    yield from (func.__defaults__, func.__kwdefaults__)
    for cell in func.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            yield None
    for name in sorted(_global_names(func.__code__)):
        if name in func.__globals__:
            yield name
            yield func.__globals__[name]


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _global_names(const)
    return names


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
        # It cannot be told apart from another of its kind: never the same twice.
        yield f"{id(item)} {sys.version}"


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
        return root is None or root.__name__ in sys.builtin_module_names
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(path.startswith(place) for place in places)
