import random

from hypothesis import given
from hypothesis import strategies as st

from barrow.running.fold import Fold


@given(st.integers(1, 40), st.randoms(use_true_random=False), st.integers(1, 7))
def test_the_order_of_arrival_and_the_batches_change_nothing(count, shuffle, size):
    def tree(numbers, batch):
        total = Fold(lambda a, b: f"({a} {b})")
        for start in range(0, len(numbers), batch):
            part = Fold(lambda a, b: f"({a} {b})")
            for number in numbers[start : start + batch]:
                part.add((0, number), str(number))
            total.extend(part.parts())
        return total.result()

    numbers = list(range(count))
    expected = tree(numbers, 1)
    shuffle.shuffle(numbers)
    assert tree(numbers, size) == expected


def test_neighbours_stay_in_order():
    fold = Fold(lambda a, b: a + b)
    numbers = list(range(100))
    random.Random(1).shuffle(numbers)
    for number in numbers:
        fold.add((0, number), [number])
    assert fold.result() == list(range(100))
