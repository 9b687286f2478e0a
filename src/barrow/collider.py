"""Another name of :mod:`barrow.fields.collider`, for ``from barrow.collider import …``."""

import sys

from barrow.fields import collider

sys.modules[__name__] = collider
