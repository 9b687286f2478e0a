"""Add up answers in an order that depends on the chunks alone.

The order in which tasks finish, and how they were handed out, must not change
the last digit of a sum. So answers are combined along a binary tree over the
numbers of the chunks: a part that has both neighbours of a pair combines them,
and hands on the rest.
"""

from collections.abc import Callable, Iterable
from typing import Any

Node = tuple[int, int]
"""Height and index in the tree: (h, i) covers chunks i·2ʰ to (i+1)·2ʰ."""


class Fold:
    """A tree that is combined while its leaves arrive, in any order.

    Examples
    --------
    >>> fold = Fold(lambda a, b: f"({a}{b})")
    >>> for number in (2, 0, 3, 1, 4):
    ...     fold.add((0, number), str(number))
    >>> fold.result()
    '(((01)(23))4)'
    """

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        self._nodes: dict[Node, Any] = {}

    def add(self, node: Node, value: Any) -> None:
        """Take in the answer of one chunk, or of a part of the tree."""
        height, index = node
        while (height, index ^ 1) in self._nodes:
            neighbour = self._nodes.pop((height, index ^ 1))
            pair = (neighbour, value) if index & 1 else (value, neighbour)
            value = self._combine(*pair)
            height, index = height + 1, index >> 1
        self._nodes[height, index] = value

    def parts(self) -> list[tuple[Node, Any]]:
        """Return what could not be combined yet, to be added to another fold."""
        return list(self._nodes.items())

    def extend(self, parts: Iterable[tuple[Node, Any]]) -> None:
        """Take in the parts of another fold."""
        for node, value in parts:
            self.add(node, value)

    def result(self) -> Any:
        """Return the total, once all chunks are in; those that never came are left out."""
        # At the end one part is left for each binary digit of the number of chunks, and some
        # more beside each that is missing.
        ordered = sorted(self._nodes.items(), key=lambda item: item[0][1] << item[0][0])
        total = ordered[0][1]
        for _, value in ordered[1:]:
            total = self._combine(total, value)
        return total
