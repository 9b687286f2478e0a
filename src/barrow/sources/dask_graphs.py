"""Make the graph of a Dask array fit to be cut into pieces.

Each block becomes as few tasks as possible. What all blocks share, such as the
mean in ``x - x.mean()``, would be computed again for every block: if it is small
it is computed once, here, and its value put into the graph in its place.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from barrow.units import format_bytes

SHARED_BYTES = 64 * 2**20
"""Most bytes of shared results that are put into the graph, all together."""

WASTE = 4
"""How many times each task may run, on average, before something is done about it."""


def prepare_graph(array: Any) -> Mapping[Any, Any]:
    """Return the optimised graph of a Dask array, as task objects by key."""
    keys = list(product([array.name], *map(range, array.numblocks)))
    graph = _optimise(array.__dask_graph__(), keys)
    waste = _measure_waste(graph, keys)
    if waste <= WASTE:
        return graph
    shared = _find_shared(array)
    if shared:
        graph = _optimise(_compute_shared(array.__dask_graph__(), shared), keys)
        waste = _measure_waste(graph, keys)
    if waste > WASTE:
        _warn_of_waste(graph, keys, waste)
    return graph


def holds_futures(array: Any) -> bool:
    """Return whether values of the graph lie on the workers of a cluster."""
    graph = array.__dask_graph__()
    for layer in getattr(graph, "layers", {}).values():
        mapping = getattr(layer, "mapping", {})
        first = next(iter(mapping.values()), None) if isinstance(mapping, Mapping) else None
        value = getattr(first, "value", first)
        if type(value).__module__.startswith("distributed") and hasattr(value, "key"):
            return True
    return False


def cull(graph: Mapping[Any, Any], keys: Sequence[Any]) -> dict[Any, Any]:
    """Return the tasks that lead to the keys."""
    found: dict[Any, Any] = {}
    wanted = list(keys)
    while wanted:
        key = wanted.pop()
        if key not in found:
            found[key] = graph[key]
            wanted.extend(found[key].dependencies)
    return found


def _optimise(graph: Any, keys: list[Any]) -> dict[Any, Any]:
    from dask._task_spec import convert_legacy_graph
    from dask.array.optimization import optimize

    # Converted again: the optimiser leaves the graph alone if a user's config says so.
    optimised: dict[Any, Any] = convert_legacy_graph(dict(optimize(graph, keys)))
    return optimised


def _measure_waste(graph: Mapping[Any, Any], keys: list[Any]) -> float:
    """Return how many times each task would run, judging by three of the blocks."""
    if len(keys) == 1:
        return 1.0
    samples = {keys[0], keys[len(keys) // 2], keys[-1]}
    largest = max(len(cull(graph, [key])) for key in samples)
    return largest * len(keys) / len(graph)


def _find_shared(array: Any) -> dict[str, Any]:
    """Return the chunks of intermediate arrays that are small and made from large ones.

    Dask notes on each layer which array it stands for. Of a chain of small arrays
    only the last is wanted: the one that something large is computed with.
    """
    graph = array.__dask_graph__()
    notes = {
        name: layer.collection_annotations
        for name, layer in getattr(graph, "layers", {}).items()
        if layer.collection_annotations and "chunks" in layer.collection_annotations
    }
    sizes = {name: _count_bytes(note) for name, note in notes.items()}
    small = {
        name
        for name, size in sizes.items()
        if name != array.name
        and size <= SHARED_BYTES
        and any(sizes.get(other, 0) >= 8 * size for other in _layers_below(graph, name))
    }
    last = [name for name in small if any(d not in small for d in graph.dependents[name])]
    chosen, total = {}, 0.0
    for name in sorted(last, key=lambda name: (sizes[name], name)):
        total += sizes[name]
        if total <= SHARED_BYTES:
            chosen[name] = notes[name]["chunks"]
    return chosen


def _compute_shared(graph: Any, shared: Mapping[str, Any]) -> Any:
    """Return the graph with the values of some layers in place of their tasks."""
    import dask.threaded
    from dask._task_spec import DataNode
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

    keys: list[Any] = [
        (name, *index)
        for name, chunks in shared.items()
        for index in product(*(range(len(sizes)) for sizes in chunks))
    ]
    # Threads of this process by name: a live cluster is none of our business.
    values = dask.threaded.get(_optimise(graph, keys), keys)
    layers, dependencies = dict(graph.layers), dict(graph.dependencies)
    for name in shared:
        nodes = {
            key: DataNode(key, value)
            for key, value in zip(keys, values, strict=True)
            if key[0] == name
        }
        layers[name], dependencies[name] = MaterializedLayer(nodes), set()
    return HighLevelGraph(layers, dependencies)


def _warn_of_waste(graph: Mapping[Any, Any], keys: list[Any], waste: float) -> None:
    needed = round(waste * len(graph) / len(keys))
    warnings.warn(
        f"Each of the {len(keys):,} blocks of the Dask array needs about {needed:,} of its "
        f"{len(graph):,} tasks, so tasks would run about {waste:,.0f} times each. What the blocks "
        f"share is too large to be kept ({format_bytes(SHARED_BYTES)} at most) or not known to "
        "be small. Store the array first with data.to_zarr(path) and give the path, "
        "or let barrow do the step that needs all blocks.",
        UserWarning,
        stacklevel=2,
    )


def _layers_below(graph: Any, name: str) -> Iterator[str]:
    seen: set[str] = set()
    wanted = list(graph.dependencies[name])
    while wanted:
        below = wanted.pop()
        if below not in seen:
            seen.add(below)
            wanted.extend(graph.dependencies[below])
            yield below


def _count_bytes(note: Mapping[str, Any]) -> float:
    size: float = prod(note["shape"]) * np.dtype(note["dtype"]).itemsize
    return size
