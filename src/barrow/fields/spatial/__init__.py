"""Spatial images: functions and segmentations over slides that are larger than memory.

``map_raster`` takes the arguments of SpatialData's and runs in bounded memory; ``segment``
joins the objects that borders of tiles cut.
"""

from barrow.fields.spatial.elements import apply, as_element
from barrow.fields.spatial.mapping import map_raster
from barrow.fields.spatial.measuring import regionprops
from barrow.fields.spatial.processing import background, normalize, register
from barrow.fields.spatial.scales import pyramid
from barrow.fields.spatial.segmenting import Segmentation, segment
from barrow.fields.spatial.statistics import stats
from barrow.fields.spatial.tissue import Tissue
from barrow.fields.spatial.watershed import Watershed

__all__ = [
    "Segmentation",
    "Tissue",
    "Watershed",
    "apply",
    "as_element",
    "background",
    "map_raster",
    "normalize",
    "pyramid",
    "register",
    "regionprops",
    "segment",
    "stats",
]
