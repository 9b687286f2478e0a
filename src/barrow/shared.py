"""An array in memory that other processes of this machine can open.

Pages live in an anonymous memory file: they are never copied through a socket,
never reach a disk, and vanish with the last process that holds them, even after
``kill -9``. A process that reads or writes maps just the part it needs and lets
go of it at once, so that shared pages are not held by everybody who ever
touched them.
"""

import mmap
import os
import tempfile
import weakref
from dataclasses import dataclass
from math import prod

import numpy as np

Ranges = tuple[tuple[int, int], ...]
"""One ``(start, stop)`` for each dimension, in the order of the dimensions."""


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
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def create(cls, shape: tuple[int, ...], dtype: np.dtype) -> tuple["SharedArray", np.ndarray]:
        """Return a new handle and the ordinary array over the same memory.

        The memory lives as long as the array or any view of it.
        """
        if dtype.hasobject:
            raise TypeError(f"An array of {dtype} holds Python objects, which cannot be shared.")
        size = prod(shape) * dtype.itemsize
        file, path = _create_file(max(size, 1))
        pages = mmap.mmap(file, max(size, 1))
        # The file stays open for those who come later; it closes with the last view.
        weakref.finalize(pages, _close_file, file, path)
        array: np.ndarray = np.ndarray(shape, dtype, buffer=pages)
        return cls(path, tuple(shape), dtype), array

    @classmethod
    def copy_of(cls, array: np.ndarray) -> tuple["SharedArray", np.ndarray]:
        """Return a handle to a copy of an array, and the copy."""
        handle, copy = cls.create(array.shape, array.dtype)
        copy[...] = array
        return handle, copy

    def write(self, ranges: Ranges, block: np.ndarray) -> None:
        """Put a block into its place."""
        if block.size:
            with _Window(self, ranges, mmap.PROT_READ | mmap.PROT_WRITE) as window:
                window[...] = block

    def read(self, ranges: Ranges) -> np.ndarray:
        """Return a copy of a block."""
        if any(start == stop for start, stop in ranges):
            return np.empty([stop - start for start, stop in ranges], self.dtype)
        with _Window(self, ranges, mmap.PROT_READ) as window:
            return np.array(window)


class _Window:
    """Map the stretch of memory in which a block lies, and let go of it at the end."""

    def __init__(self, handle: SharedArray, ranges: Ranges, protection: int) -> None:
        strides = [handle.dtype.itemsize] * len(handle.shape)
        for axis in range(len(handle.shape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * handle.shape[axis + 1]
        first = sum(start * stride for (start, _), stride in zip(ranges, strides, strict=True))
        last = sum((stop - 1) * stride for (_, stop), stride in zip(ranges, strides, strict=True))
        self._lead = first % mmap.ALLOCATIONGRANULARITY
        file = os.open(handle.path, os.O_RDWR if protection & mmap.PROT_WRITE else os.O_RDONLY)
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
