"""Spatial images: functions and segmentations over slides that are larger than memory.

``map_raster`` takes the arguments of SpatialData's and runs in bounded memory; ``segment``
joins the objects that borders of blocks cut.
"""

from barrow.fields.spatial.mapping import map_raster
from barrow.fields.spatial.scales import pyramid

__all__ = ["map_raster", "pyramid"]
