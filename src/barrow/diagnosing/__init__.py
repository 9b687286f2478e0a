"""The doctor: names what is wrong with a run, from its record alone."""

from barrow.diagnosing.diagnose import diagnose

__all__ = ["diagnose"]
