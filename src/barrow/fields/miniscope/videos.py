"""Videos as one movie: AVI, MKV, MP4 and whatever else FFmpeg reads.

Frames are decoded in the ranges that are asked for. Where a video can be entered is found
once, by walking over its packets without decoding them.
"""

import os
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from barrow.errors import InputError
from barrow.model.source import Reader, Source
from barrow.shared import Ranges
from barrow.sources.identity import identify_file, identify_text

_THREAD = threading.local()
# So many frames are decoded in the time that it takes to jump over them.
_NEAR = 4
# Of a video that loses something: so many that noise does not turn into squares.
_BITS_OF_A_PIXEL = 2

SUFFIXES = (".avi", ".mkv", ".mp4", ".mov", ".m4v", ".wmv")


def open_videos(paths: Sequence[Path]) -> Source:
    """Return videos, one after the other, as a source of frame × height × width."""
    files = tuple(_inspect(path) for path in paths)
    first = files[0]
    for path, file in zip(paths, files, strict=True):
        if (file.height, file.width, file.dtype) != (first.height, first.width, first.dtype):
            raise InputError(
                f"{path.name} has frames of {file.height} × {file.width} {file.dtype}, but "
                f"{paths[0].name} has {first.height} × {first.width} {first.dtype}. Videos of one "
                "movie must be alike: leave it out, or open it alone."
            )
    count = sum(file.frames for file in files)
    return Source(
        name=paths[0].parent.name or paths[0].stem,
        lengths={"frame": count, "height": first.height, "width": first.width},
        dtype=np.dtype(first.dtype),
        read=VideoReader(files),
        grain={"frame": max(file.distance for file in files)},
    )


@dataclass(frozen=True)
class Video:
    """One file: what its frames are like, and where it can be entered."""

    path: str
    stamp: str
    frames: int
    height: int
    width: int
    dtype: str
    distance: int
    """Frames from one place to enter to the next, at most."""


@dataclass(frozen=True)
class VideoReader(Reader):
    """Decodes the frames of a range, file by file."""

    files: tuple[Video, ...]

    def __call__(self, ranges: Ranges) -> np.ndarray:
        (first, last), (top, bottom), (left, right) = ranges
        shape = last - first, bottom - top, right - left
        out = np.empty(shape, self.files[0].dtype)
        begin = 0
        for file in self.files:
            start, stop = max(first, begin), min(last, begin + file.frames)
            if start < stop:
                part = out[start - first : stop - first]
                frames = _decode(file, start - begin, stop - begin)
                for place, frame in zip(part, frames, strict=True):
                    place[:] = frame[top:bottom, left:right]
            begin += file.frames
        return out

    def identity(self) -> str | None:
        found = [identify_file(file.path) for file in self.files]
        return identify_text(*found) if all(found) else None


def write_frames(path: Path, frames: Iterable[np.ndarray], *, fps: float, codec: str) -> Path:
    """Write frames of 8 bits as a video."""
    from fractions import Fraction

    av = _av()
    with av.open(str(path), "w") as container:
        stream = None
        for frame in frames:
            values = np.ascontiguousarray(frame, np.uint8)
            if stream is None:
                stream = container.add_stream(codec, rate=Fraction(fps).limit_denominator(1000))
                stream.height, stream.width = values.shape[:2]
                stream.pix_fmt = "gray" if codec in ("ffv1", "rawvideo") else "yuv420p"
                stream.bit_rate = int(_BITS_OF_A_PIXEL * fps * values.shape[0] * values.shape[1])
            form = "gray" if values.ndim == 2 else "rgb24"
            container.mux(stream.encode(av.VideoFrame.from_ndarray(values, format=form)))
        if stream is not None:
            container.mux(stream.encode())
    return path


@dataclass(frozen=True)
class _Index:
    times: list[int]
    """Of all frames, in the order in which they are shown."""
    doors: list[int]
    """Numbers of the frames at which decoding can begin."""


def _inspect(path: Path) -> Video:
    av = _av()
    stamp = identify_file(str(path)) or ""
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise InputError(f"{path} holds no video.")
            stream = container.streams.video[0]
            height, width, promised = stream.height, stream.width, stream.frames
            dtype = _dtype_of(stream.pix_fmt or "")
        index = _find_doors(str(path), stamp)
    except av.error.FFmpegError as error:
        raise InputError(
            f"{path} cannot be read as a video: {error.strerror}. It may be damaged or unfinished; "
            "leave it out, or repair it with ffmpeg."
        ) from None
    frames = len(index.times)
    if frames < promised or not frames:
        raise InputError(
            f"{path} ends after {frames} frames; its header promises {promised}. The file was cut "
            "off: copy it again, or rewrite what is there with ffmpeg -i IN -c copy OUT."
        )
    ends = [*index.doors[1:], frames]
    distance = max(end - door for door, end in zip(index.doors, ends, strict=True))
    return Video(str(path), stamp, frames, height, width, dtype, distance)


@lru_cache(maxsize=512)
def _find_doors(path: str, stamp: str) -> _Index:  # noqa: ARG001 - another file, another index
    with _av().open(path) as container:
        stream = container.streams.video[0]
        found = []
        for packet in container.demux(stream):
            time = packet.pts if packet.pts is not None else packet.dts
            if packet.size and time is not None:
                found.append((time, bool(packet.is_keyframe)))
    found.sort()
    doors = [number for number, (_, is_door) in enumerate(found) if is_door]
    return _Index([time for time, _ in found], doors or [0])


def _decode(file: Video, start: int, stop: int) -> Iterator[np.ndarray]:
    """Yield the frames of a range; the decoder goes on where this thread last left it."""
    decoder = getattr(_THREAD, "decoder", None)
    # It is put back when all went well: nobody knows where an error leaves it.
    _THREAD.decoder = None
    if decoder is None or not decoder.can_serve(file):
        if decoder is not None:
            decoder.close()
        decoder = _Decoder(file)
    decoder.go_to(start)
    for _ in range(start, stop):
        yield decoder.next()
    _THREAD.decoder = decoder


class _Decoder:
    """A video that is open at one of its frames."""

    def __init__(self, file: Video) -> None:
        self.file, self.process, self.at = file, os.getpid(), 0
        self.form = "gray" if file.dtype == "uint8" else "gray16le"
        self.index = _find_doors(file.path, file.stamp)
        self.container = _av().open(file.path)
        self.stream = self.container.streams.video[0]
        self.frames = self.container.decode(self.stream)

    def can_serve(self, file: Video) -> bool:
        """Return whether it is this video that is open, in this process."""
        return (self.file, self.process) == (file, os.getpid())

    def go_to(self, start: int) -> None:
        """Let a frame be the next one: what lies before it is passed over."""
        doors = self.index.doors
        door = doors[max(0, bisect_right(doors, start) - 1)]
        is_ahead = self.at <= start and self.at + _NEAR >= door
        if not is_ahead:
            self.container.seek(self.index.times[door], stream=self.stream, backward=True)
            self.frames = self.container.decode(self.stream)
        self.at = start

    def next(self) -> np.ndarray:
        """Return the next frame."""
        try:
            for frame in self.frames:
                time = frame.pts if frame.pts is not None else frame.dts
                if time is not None and time >= self.index.times[self.at]:
                    self.at += 1
                    return np.asarray(frame.to_ndarray(format=self.form))
        except _av().error.FFmpegError:
            pass
        raise InputError(
            f"{self.file.path}: frame {self.at} cannot be decoded. The file is damaged there; "
            "rewrite it with ffmpeg, or choose a subset of frames before it."
        )

    def close(self) -> None:
        """Let the file go."""
        self.container.close()


def _dtype_of(pixels: str) -> str:
    return "uint16" if pixels.startswith(("gray1", "gray9")) else "uint8"


def _av() -> Any:
    try:
        import av
    except ImportError:
        raise InputError(
            "Videos are read by PyAV, which is not installed: pip install 'barrow[miniscope]'."
        ) from None
    return av
