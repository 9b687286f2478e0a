"""What OME-Zarr and OME-TIFF files say about an image: channels, size and place of a pixel.

Reads and writes the words of NGFF 0.5; no pixels.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barrow.sources.zarr_groups import find_image

VERSION = "0.5"
_TYPES = {"c": "channel", "z": "space", "y": "space", "x": "space"}


@dataclass(frozen=True)
class Described:
    """What is known of an image beside its pixels."""

    channels: list[str] | None = None
    scale: Mapping[str, float] = field(default_factory=dict)
    """Size of a pixel along each dimension."""
    translation: Mapping[str, float] = field(default_factory=dict)
    """Where the first pixel lies."""
    units: Mapping[str, str] = field(default_factory=dict)

    def attributes(self) -> dict[str, Any]:
        """Return it as attributes of a DataArray, without what says nothing."""
        found = {"scale": self.scale, "translation": self.translation, "units": self.units}
        return {name: dict(value) for name, value in found.items() if value}


def describe_image(path: str | os.PathLike[str]) -> Described | None:
    """Return what a file says about its image; None if it is no OME-Zarr or TIFF file."""
    if "://" in str(path):
        return None
    folder = Path(path).expanduser()
    if folder.is_dir():
        return _describe_zarr(folder)
    return _describe_tiff(folder)


def write_group(
    path: Path,
    name: str,
    dims: Sequence[str],
    described: Described,
    levels: Sequence[Mapping[str, float]],
    *,
    is_labels: bool = False,
) -> None:
    """Write the group of a multi-scale image whose arrays ``0``, ``1``… are there.

    Parameters
    ----------
    levels
        Of each array: by how much it is coarser than the finest.
    """
    datasets = []
    for number, factors in enumerate(levels):
        scale = [described.scale.get(dim, 1.0) * factors.get(dim, 1.0) for dim in dims]
        shift = [described.translation.get(dim, 0.0) for dim in dims]
        moves: list[dict[str, Any]] = [{"type": "scale", "scale": scale}]
        if any(shift):
            moves.append({"type": "translation", "translation": shift})
        datasets.append({"path": str(number), "coordinateTransformations": moves})
    axes = []
    for dim in dims:
        unit = described.units.get(dim)
        axes.append({"name": dim, "type": _TYPES[dim], **({"unit": unit} if unit else {})})
    ome: dict[str, Any] = {
        "version": VERSION,
        "multiscales": [{"name": name, "axes": axes, "datasets": datasets}],
    }
    if described.channels is not None:
        ome["omero"] = {"channels": [{"label": str(label)} for label in described.channels]}
    if is_labels:
        ome["image-label"] = {"version": VERSION}
    content = {"zarr_format": 3, "node_type": "group", "attributes": {"ome": ome}}
    # Whole or not at all: a reader never meets half a description.
    half = path / "zarr.json.partial"
    half.write_text(json.dumps(content, indent=2))
    half.replace(path / "zarr.json")


def _describe_zarr(folder: Path) -> Described | None:
    import zarr

    found: Any = zarr.open(str(folder), mode="r")
    if not isinstance(found, zarr.Group):
        return None
    attributes: dict[str, Any] = dict(found.attrs)
    image = find_image(attributes)
    if image is None:
        return None
    axes = [axis if isinstance(axis, Mapping) else {"name": axis} for axis in image.get("axes", ())]
    names = [str(axis["name"]) for axis in axes]
    moves = list(image["datasets"][0].get("coordinateTransformations", ()))
    scale = dict.fromkeys(names, 1.0)
    shift = dict.fromkeys(names, 0.0)
    for move in [*moves, *image.get("coordinateTransformations", ())]:
        if "scale" in move:
            for name, factor in zip(names, move["scale"], strict=False):
                scale[name] *= factor
                shift[name] *= factor
        elif "translation" in move:
            for name, step in zip(names, move["translation"], strict=False):
                shift[name] += step
    holder = attributes.get("ome", attributes)
    channels = [c.get("label") for c in holder.get("omero", {}).get("channels", ())]
    return Described(
        channels=channels if channels and all(channels) else None,
        scale={n: v for n, v in scale.items() if v != 1.0},
        translation={n: v for n, v in shift.items() if v != 0.0},
        units={a["name"]: a["unit"] for a in axes if a.get("unit")},
    )


def _describe_tiff(path: Path) -> Described | None:
    with path.open("rb") as file:
        if file.read(4) not in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
            return None
    import tifffile

    with tifffile.TiffFile(path) as tiff:
        text = tiff.ome_metadata
    if text is None:
        return None
    pixels = tifffile.xml2dict(text)["OME"]["Image"]
    pixels = (pixels[0] if isinstance(pixels, list) else pixels)["Pixels"]
    listed = pixels.get("Channel", [])
    listed = listed if isinstance(listed, list) else [listed]
    names = [channel.get("Name") for channel in listed]
    sizes = {dim: pixels.get(f"PhysicalSize{dim.upper()}") for dim in ("z", "y", "x")}
    return Described(
        channels=[str(name) for name in names] if names and all(names) else None,
        scale={dim: float(size) for dim, size in sizes.items() if size},
        # The unit that OME assumes where none is said.
        units=dict.fromkeys((dim for dim, size in sizes.items() if size), "micrometer"),
    )
