"""Call a step on small real blocks to learn what it returns.

The function sees nothing but pieces of the user's own data. An empty array is
handed to it only when the data themselves are empty.
"""

from collections.abc import Sequence

from barrow.errors import StepError
from barrow.model.applied import (
    Apply,
    Form,
    as_array,
    join_grains,
    join_lengths,
    reach,
    read_inputs,
)
from barrow.model.reading import is_much
from barrow.model.source import Source
from barrow.model.step import Step
from barrow.probing.forms import Observation, infer_form
from barrow.probing.samples import Core, sample_cores


class TooMuchError(Exception):
    """To learn the form, too much would have to be computed by the steps before."""


def learn_form(step: Step, inputs: Sequence[Source]) -> Form:
    """Return what a (resolved) step makes of its inputs, by calling it a few times.

    Raises a :class:`TooMuchError` before anything large is read through other steps.
    """
    lengths = join_lengths(inputs)
    grain = join_grains(inputs)
    whole = frozenset(str(dim) for dim in step.whole)
    if 0 in lengths.values():
        whole = frozenset(lengths)
    # Each turn finds at least one more dimension that must be whole, or ends.
    for _ in range(len(lengths) + 1):
        form = infer_form(step, lengths, whole, _observe(step, inputs, lengths, grain, whole))
        if form.whole == whole:
            return form
        whole = form.whole
    raise StepError(
        f"'{step.name}' returns other shapes each time it is called with all of "
        f"{sorted(lengths)}. Use barrow.reduce with a combine function."
    )


def _observe(
    step: Step,
    inputs: Sequence[Source],
    lengths: dict[str, int],
    grain: dict[str, int],
    whole: frozenset[str],
) -> list[Observation]:
    failure: Exception | None = None
    for cores in sample_cores(lengths, grain, whole):
        if any(
            is_much(source, reach(step, source, core)[0]) for source in inputs for core in cores
        ):
            raise TooMuchError(step.name)
        try:
            return [_call(step, inputs, core) for core in cores]
        except (StepError, MemoryError):
            raise
        except Exception as error:
            # Perhaps the block was too small for this function: offer a larger one.
            failure = error
    assert failure is not None
    raise failure


def _call(step: Step, inputs: Sequence[Source], core: Core) -> Observation:
    arrays, margins = read_inputs(step, inputs, core)
    unknown = Form({}, inputs[0].dtype, frozenset(), frozenset())
    answer = as_array(Apply(step, tuple(inputs), unknown).call(arrays, core), step)
    given = {dim: stop - start + sum(margins[dim]) for dim, (start, stop) in core.items()}
    return Observation(given, answer.shape, answer.dtype)
