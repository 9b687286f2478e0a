"""Selections and pictures as calls: what methods of the data do as well."""

from typing import Any

from barrow.fields.ephys.settings import takes_cfg
from barrow.fields.ephys.trial_data import TrialData


@takes_cfg
def selectdata(data: TrialData, **selection: Any) -> TrialData:
    """Return a view of some trials, channels, times or frequencies.

    The arguments are those of :meth:`TrialData.selectdata`.
    """
    return data.selectdata(**selection)


def show(data: TrialData, squeeze: bool = True, **selection: Any) -> Any:
    """Return a selection as an array; a list of arrays for several trials."""
    return data.show(squeeze, **selection)


def singlepanelplot(data: TrialData, **selection: Any) -> Any:
    """Draw a selection in one panel; return figure and axes."""
    return data.singlepanelplot(**selection)


def multipanelplot(data: TrialData, **selection: Any) -> Any:
    """Draw each channel in a panel of its own; return figure and axes."""
    return data.multipanelplot(**selection)
