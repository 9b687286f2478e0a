"""Choose what a timeline shows: all tasks if they are few, else those that matter, and sums.

A figure with a hundred thousand bars is neither small nor readable. Failures and the
longest tasks are always drawn one by one; all others are put together in equal parts
of the time, with their number and how busy the worker was. Nothing is dropped.
"""

import numpy as np

from barrow.reporting.content import Timeline
from barrow.reporting.tasks import PHASES, Tasks
from barrow.reporting.words import shorten, to_list

MOST_TASKS = 3000
MOST_FAILED = 1000
MOST_BLOCKS = 4000
MOST_GROUPS = 6
LABEL_LENGTH = 80


def draw_timeline(
    tasks: Tasks, lane_of: np.ndarray, lanes: tuple[str, ...], began: float
) -> Timeline:
    """Return the timeline of tasks, each in its lane."""
    if not len(tasks):
        return Timeline()
    groups, group_of = _group(tasks)
    chosen = _choose(tasks)
    picked = tasks.pick(chosen)
    columns = {
        "lane": lane_of[chosen].tolist(),
        "start": to_list(picked.started - began),
        "seconds": to_list(picked.seconds),
        "group": group_of[chosen].tolist(),
        "step": [shorten(step, LABEL_LENGTH) for step in picked.step],
        "label": [shorten(label, LABEL_LENGTH) for label in picked.label],
        "peak_bytes": to_list(picked.peak_bytes),
        "phases": [to_list(row) for row in picked.phases],
        "outcome": picked.outcome,
        "error": [shorten(error, LABEL_LENGTH) for error in picked.error],
    }
    rest = np.setdiff1d(np.arange(len(tasks)), chosen)
    blocks = _put_together(tasks.pick(rest), lane_of[rest], group_of[rest], began)
    if tasks.has_phases:
        return Timeline(lanes, PHASES, columns, blocks, len(tasks))
    has_others = len(set(tasks.step)) > len(groups)
    return Timeline(lanes, groups, columns, blocks, len(tasks), has_others)


def _group(tasks: Tasks) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the steps that get a colour, longest first, and the group of each task."""
    names, which = np.unique(np.array(tasks.step, object), return_inverse=True)
    spent = np.bincount(which, weights=tasks.seconds)
    order = np.argsort(-spent, kind="stable")
    rank = np.empty(len(names), int)
    rank[order] = np.arange(len(names))
    if len(names) <= MOST_GROUPS:
        return tuple(names[order]), rank[which]
    kept = tuple(names[order[: MOST_GROUPS - 1]])
    others = f"{len(names) - len(kept)} other steps"
    return (*kept, others), np.minimum(rank, MOST_GROUPS - 1)[which]


def _choose(tasks: Tasks) -> np.ndarray:
    """Return the numbers of the tasks that are drawn one by one."""
    if len(tasks) <= MOST_TASKS:
        return np.arange(len(tasks))
    longest_first = np.argsort(-tasks.seconds, kind="stable")
    failed = ~tasks.is_done[longest_first]
    first = longest_first[failed][:MOST_FAILED]
    rest = longest_first[~failed][: MOST_TASKS - len(first)]
    return np.sort(np.concatenate([first, rest]))


def _put_together(
    tasks: Tasks, lane: np.ndarray, group: np.ndarray, began: float
) -> dict[str, list[float]]:
    """Return sums of tasks in equal parts of the time, for each lane."""
    if not len(tasks):
        return {}
    start = tasks.started - began
    n_lanes = int(lane.max()) + 1
    n_bins = max(10, MOST_BLOCKS // n_lanes)
    first, last = start.min(), (start + tasks.seconds).max()
    width = max((last - first) / n_bins, 1e-9)
    # A task counts where its middle lies: shorter than a part, it is in one of them.
    part = np.clip(((start + tasks.seconds / 2 - first) / width).astype(int), 0, n_bins - 1)
    cell = lane * n_bins + part
    size = n_lanes * n_bins
    count = np.bincount(cell, minlength=size)
    spent = np.bincount(cell, weights=tasks.seconds, minlength=size)
    # Coloured by the group that took most of the time.
    n_groups = int(group.max()) + 1
    by_group = np.bincount(cell * n_groups + group, weights=tasks.seconds)
    by_group = np.pad(by_group, (0, size * n_groups - len(by_group))).reshape(size, n_groups)
    used = np.flatnonzero(count)
    return {
        "lane": (used // n_bins).tolist(),
        "start": to_list(first + (used % n_bins) * width),
        "seconds": [float(f"{width:.6g}")] * len(used),
        "group": by_group[used].argmax(axis=1).tolist(),
        "tasks": count[used].tolist(),
        "busy": to_list(np.minimum(1, spent[used] / width), digits=3),
    }
