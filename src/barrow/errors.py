"""What can go wrong, one class for each kind.

Every error that a user can cause is a :class:`BarrowError` and also the built-in
kind that plain Python would have raised, so that both ``except`` lines work.
"""


class BarrowError(Exception):
    """Anything barrow refuses or could not do; the message says what to change."""


class InputError(BarrowError, ValueError):
    """An argument that cannot be used: which one, its value, and what would do."""


class BudgetError(BarrowError, MemoryError):
    """No chunk fits the memory that is allowed."""


class OutputError(BarrowError, OSError):
    """The place for the result cannot be used."""


class StepError(BarrowError, RuntimeError):
    """The user's function returned something that cannot be put together."""


class TravelError(BarrowError, TypeError):
    """Something cannot be sent to the workers, or they cannot open it."""


class SkippedWarning(UserWarning):
    """A result has gaps: chunks that could not be computed and were left out, as asked."""


class ClusterError(BarrowError, RuntimeError):
    """The workers could not be started or reached, or were lost."""
