"""An array in memory that other processes of this machine can open.

Pages live in an anonymous memory file: they are never copied through a socket,
never reach a disk, and vanish with the last process that holds them, even after
``kill -9``. Others write into the file, or map just the part they need and let
go of it at once, so that shared pages are not held by everybody who ever
touched them. A worker that comes too late writes into this file or nowhere.
"""

import errno
import mmap
import os
import tempfile
import threading
import weakref
from dataclasses import dataclass
from math import prod

import numpy as np

Ranges = tuple[tuple[int, int], ...]
"""One ``(start, stop)`` for each dimension, in the order of the dimensions."""

_handles: "weakref.WeakKeyDictionary[mmap.mmap, SharedArray]" = weakref.WeakKeyDictionary()
"""What lies in shared memory that this process has made."""

_SHORT_BYTES = 1024
_RESERVE_BYTES = 2**24


@dataclass(frozen=True)
class SharedArray:
    """The address of an array in shared memory: small, and fit to be sent.

    Examples
    --------
    >>> import numpy as np
    >>> handle, array = SharedArray.create((2, 3), np.dtype("f4"))
    >>> handle.write(((0, 1), (0, 3)), np.ones((1, 3), "f4"))
    >>> handle.write(((1, 2), (0, 3)), np.zeros((1, 3), "f4"))
    >>> array
    array([[1., 1., 1.],
           [0., 0., 0.]], dtype=float32)
    """

    path: str
    inode: tuple[int, int]
    """Device and number of the file, since its path may come to mean another one."""
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def create(cls, shape: tuple[int, ...], dtype: np.dtype) -> tuple["SharedArray", np.ndarray]:
        """Return a new handle and the ordinary array over the same memory.

        The memory lives as long as the array or any view of it.
        """
        if dtype.hasobject:
            raise TypeError(f"An array of {dtype} holds Python objects, which cannot be shared.")
        size = max(1, prod(shape) * dtype.itemsize)
        file, path = _create_file(size)
        pages = mmap.mmap(file, size)
        # The file stays open for those who come later; it closes with the last view.
        weakref.finalize(pages, _close_file, file, path)
        if size >= 2 * _RESERVE_BYTES:
            threading.Thread(target=_reserve, args=(path, size), daemon=True).start()
        array: np.ndarray = np.ndarray(shape, dtype, buffer=pages)
        handle = _handles[pages] = cls(path, _identify(file), tuple(shape), dtype)
        return handle, array

    @classmethod
    def share(cls, array: np.ndarray) -> tuple["SharedArray", np.ndarray]:
        """Return a handle to the values of an array, and the array that holds them.

        That is a copy, unless the array lies in shared memory already.
        """
        handle = _handles.get(array.base) if isinstance(array.base, mmap.mmap) else None
        if handle is not None and (handle.shape, handle.dtype) == (array.shape, array.dtype):
            return handle, array
        handle, copy = cls.create(array.shape, array.dtype)
        copy[...] = array
        return handle, copy

    def write(self, ranges: Ranges, block: np.ndarray) -> None:
        """Put a block into its place."""
        if not block.size:
            return
        run = self._run_items(ranges)
        if run * self.dtype.itemsize < _SHORT_BYTES:
            with _Window(self, ranges, mmap.PROT_READ | mmap.PROT_WRITE) as window:
                window[...] = block
            return
        # One call for each row costs half of what the page faults of a mapping would.
        rows = np.ascontiguousarray(block, self.dtype).reshape(-1, run).view(np.uint8)
        file = self._open(os.O_WRONLY)
        try:
            for row, offset in zip(rows, self._run_offsets(ranges), strict=True):
                _write_all(file, row.data, int(offset))
        finally:
            os.close(file)

    def _open(self, mode: int) -> int:
        """Open the file, and make sure that it is the one that was meant."""
        gone = FileNotFoundError(f"The shared memory at {self.path} is gone.")
        try:
            file = os.open(self.path, mode)
        except OSError as error:
            # By now the path may lead nowhere, or to a socket.
            raise gone if error.errno in (errno.ENOENT, errno.ENXIO) else error from None
        if _identify(file) != self.inode:
            os.close(file)
            raise gone
        return file

    def _run_items(self, ranges: Ranges) -> int:
        """Return how many items of a block lie side by side in memory."""
        items = 1
        for (start, stop), length in zip(reversed(ranges), reversed(self.shape), strict=True):
            items *= stop - start
            if stop - start < length:
                break
        return items

    def _run_offsets(self, ranges: Ranges) -> np.ndarray:
        """Return where each stretch of a block begins, in bytes, in order."""
        offsets = np.zeros(1, np.int64)
        left = self._run_items(ranges)
        strides = _strides(self.shape, self.dtype.itemsize)
        for axis in range(len(ranges) - 1, -1, -1):
            start, stop = ranges[axis]
            steps = np.arange(start, stop if left == 1 else start + 1) * strides[axis]
            offsets = (steps[:, None] + offsets).ravel()
            left = max(1, left // (stop - start))
        return offsets

    def read(self, ranges: Ranges) -> np.ndarray:
        """Return a copy of a block."""
        if any(start == stop for start, stop in ranges):
            return np.empty([stop - start for start, stop in ranges], self.dtype)
        run = self._run_items(ranges)
        if run * self.dtype.itemsize < _SHORT_BYTES:
            with _Window(self, ranges, mmap.PROT_READ) as window:
                return np.array(window)
        block = np.empty([stop - start for start, stop in ranges], self.dtype)
        rows = block.reshape(-1, run).view(np.uint8)
        file = self._open(os.O_RDONLY)
        try:
            for row, offset in zip(rows, self._run_offsets(ranges), strict=True):
                _read_all(file, row.data, int(offset))
        finally:
            os.close(file)
        return block


class _Window:
    """Map the stretch of memory in which a block lies, and let go of it at the end."""

    def __init__(self, handle: SharedArray, ranges: Ranges, protection: int) -> None:
        strides = _strides(handle.shape, handle.dtype.itemsize)
        first = sum(start * stride for (start, _), stride in zip(ranges, strides, strict=True))
        last = sum((stop - 1) * stride for (_, stop), stride in zip(ranges, strides, strict=True))
        self._lead = first % mmap.ALLOCATIONGRANULARITY
        file = handle._open(os.O_RDWR if protection & mmap.PROT_WRITE else os.O_RDONLY)
        try:
            length = last + handle.dtype.itemsize - first + self._lead
            self._pages = mmap.mmap(
                file, length, prot=protection, flags=mmap.MAP_SHARED, offset=first - self._lead
            )
        finally:
            os.close(file)
        self._shape = tuple(stop - start for start, stop in ranges)
        self._strides = strides
        self._dtype = handle.dtype

    def __enter__(self) -> np.ndarray:
        return np.ndarray(
            self._shape, self._dtype, buffer=self._pages, offset=self._lead, strides=self._strides
        )

    def __exit__(self, *_: object) -> None:
        try:
            self._pages.close()
        except BufferError:
            # After an exception a traceback still holds the view; it closes with that.
            pass


def _identify(file: int) -> tuple[int, int]:
    status = os.fstat(file)
    return status.st_dev, status.st_ino


def _strides(shape: tuple[int, ...], itemsize: int) -> list[int]:
    strides = [itemsize] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return strides


def _write_all(file: int, content: memoryview, offset: int) -> None:
    while content:
        written = os.pwrite(file, content, offset)
        content, offset = content[written:], offset + written


def _read_all(file: int, space: memoryview, offset: int) -> None:
    while space:
        count = os.preadv(file, [space], offset)
        if not count:
            raise OSError("shared memory ended before the block did")
        space, offset = space[count:], offset + count


def _reserve(path: str, size: int) -> None:
    """Get the pages of a large file in bulk, which is several times cheaper than one by one."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return  # already gone
    try:
        for offset in range(0, size, _RESERVE_BYTES):
            os.posix_fallocate(file, offset, min(_RESERVE_BYTES, size - offset))
    except (OSError, AttributeError):
        pass  # the pages come one by one, then
    finally:
        os.close(file)


def _create_file(size: int) -> tuple[int, str]:
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("barrow", os.MFD_CLOEXEC)
        os.ftruncate(file, size)
        return file, f"/proc/{os.getpid()}/fd/{file}"
    file, path = tempfile.mkstemp(prefix="barrow-")
    os.ftruncate(file, size)
    return file, path


def _close_file(file: int, path: str) -> None:
    os.close(file)
    if not path.startswith("/proc/"):
        os.unlink(path)
