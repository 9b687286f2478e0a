"""Do all that ``make soak`` does, one after the other; end with 1 if anything went wrong."""

import sys

from soak import background, cycles, faults, lies

failed = False
for part in (lies, cycles, background, faults):
    print(f"== {part.__doc__.splitlines()[0]}", flush=True)
    failed |= bool(part.main())
sys.exit(failed)
