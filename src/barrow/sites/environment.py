"""Choose the environment of a worker process.

Text in, text out: the environment of this process is read by the caller and
never changed.
"""

import os
from collections.abc import Iterable, Mapping

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""How many threads the numerical libraries start for themselves."""

# Dask's nanny sets this and leaves it behind in the client's environment. It makes
# glibc ask the kernel for every array above 128 KiB anew: (x + 1) * 2 - x took four
# times the CPU at 0.25 to 1 MB. Left alone, glibc learns a threshold from the sizes
# it sees; fixed thresholds of 32 and 64 MiB with one, two or more arenas were not
# measurably faster than that, so none is set.
NANNY_TRIM_THRESHOLD = ("MALLOC_TRIM_THRESHOLD_", "65536")


def make_environment(
    environ: Mapping[str, str],
    *,
    search_path: Iterable[str],
    library_threads: int,
    tasks: int = 1,
) -> dict[str, str]:
    """Return the environment for a worker.

    Parameters
    ----------
    environ
        Environment of the client.
    search_path
        Folders in which the client finds modules, in order.
    library_threads
        Threads for each numerical library, in each task.
    tasks
        How many the worker runs at once.

    Examples
    --------
    >>> made = make_environment({"HOME": "/h"}, search_path=["/a", "/b"], library_threads=1)
    >>> made["HOME"], made["PYTHONPATH"].split(os.pathsep), made["OMP_NUM_THREADS"]
    ('/h', ['/a', '/b'], '1')
    """
    made = dict(environ)
    name, value = NANNY_TRIM_THRESHOLD
    if made.get(name) == value:
        del made[name]
    made.update(dict.fromkeys(THREAD_VARIABLES, str(library_threads)))
    # Numba never has more than this: a task that asks for all threads of its worker can have
    # them, and tasks that do not are held to their share, see Work.neighbours.
    made["NUMBA_NUM_THREADS"] = str(library_threads * tasks)
    made["PYTHONPATH"] = os.pathsep.join(search_path)
    return made


def count_library_threads(cores: int, *, workers: int, threads: int) -> int:
    """Return how many threads a library may start in each task without crowding the cores.

    Examples
    --------
    >>> count_library_threads(16, workers=4, threads=1)
    4
    >>> count_library_threads(16, workers=16, threads=2)
    1
    """
    return max(1, cores // max(1, workers * threads))


def list_search_path(entries: Iterable[object], folder: str) -> list[str]:
    """Return entries of ``sys.path`` that mean the same in another process.

    Examples
    --------
    >>> list_search_path(["", "lib", "/opt/lib", "/opt/lib"], "/home/ada")
    ['/home/ada', '/home/ada/lib', '/opt/lib']
    """
    paths = [os.path.join(folder, entry) for entry in entries if isinstance(entry, str)]
    paths = [os.path.normpath(path) for path in paths]
    return [path for path in dict.fromkeys(paths) if os.pathsep not in path]
