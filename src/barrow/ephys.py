"""Another name of :mod:`barrow.fields.ephys`, for ``from barrow.ephys import …``."""

import sys

from barrow.fields import ephys

sys.modules[__name__] = ephys
