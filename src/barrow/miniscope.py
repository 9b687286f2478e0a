"""Another name of :mod:`barrow.fields.miniscope`, for ``from barrow.miniscope import …``."""

import sys

from barrow.fields import miniscope

sys.modules[__name__] = miniscope
