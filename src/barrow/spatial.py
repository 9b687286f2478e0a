"""Another name of :mod:`barrow.fields.spatial`, for ``from barrow.spatial import …``."""

import sys

from barrow.fields import spatial

sys.modules[__name__] = spatial
