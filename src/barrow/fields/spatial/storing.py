"""Store the answer for a raster as OME-Zarr."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barrow.fields.spatial.deferred import Work
from barrow.fields.spatial.dressing import Names
from barrow.fields.spatial.raster import Raster
from barrow.fields.spatial.scales import finish_group


def store_raster(
    raster: Raster,
    work: Work,
    lengths: Mapping[str, int],
    names: Names,
) -> Any:
    """Compute work into an OME-Zarr group, all scales, and return what was given, opened there.

    The finest scale is a result of its own: interrupted, it is taken up again. The group is
    described when all scales are whole.
    """
    path = Path(work.means.to)
    path.mkdir(parents=True, exist_ok=True)
    values = work.values(to=path / "0")
    tree = finish_group(raster, path, raster.factors, work.means, names, lengths)
    if raster.given == "array":
        return values
    return tree if raster.given == "tree" else tree["scale0"]["image"]
