"""See from outside how much memory a process takes for itself.

The fence stops what asks for private memory. Shared memory and what a library maps
past the limit are not seen by it, but by whoever looks at the process.
"""

GUARD_SECONDS = 0.05
"""How often to look; a look takes 20 µs."""
GUARD_SHARE = 0.95
"""Of its limit, what a worker may hold: it can take 50 MB more between two looks."""


def held_bytes(pid: int) -> int:
    """Return the memory that goes when a process goes; 0 if it has, or if that is not known.

    Pages of files do not count: the system takes them back when it needs them.

    Examples
    --------
    >>> import os, sys
    >>> held_bytes(os.getpid()) > 10**6 or sys.platform != "linux"
    True
    >>> held_bytes(2**30)
    0
    """
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            text = file.read()
    except OSError:
        return 0
    return sum(_find_bytes(text, name) for name in (b"RssAnon:", b"RssShmem:"))


def _find_bytes(text: bytes, name: bytes) -> int:
    place = text.find(name)
    return 0 if place < 0 else 1024 * int(text[place + len(name) : place + 40].split()[0])
