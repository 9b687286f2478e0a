"""What the figures of a report draw, as plain data.

``draw.js`` draws them with BokehJS in the reader's browser. Making the same figures with
the Python side of Bokeh would cost every run a second or two for its import alone; see
``docs/design/reports.md``.
"""

from barrow.reporting.content import Content
from barrow.reporting.figure import Figure
from barrow.reporting.figure_of_memory import draw_memory_figure
from barrow.reporting.figure_of_predictions import draw_prediction_figures
from barrow.reporting.figure_of_tasks import draw_timeline_figure


def draw_figures(content: Content) -> dict[str, Figure]:
    """Return the figures of a report by their names; those with nothing to show are missing."""
    found = [
        *draw_prediction_figures(content.prediction),
        draw_timeline_figure(content.timeline, content.seconds),
        draw_memory_figure(content.memory, content.seconds),
        content.outlook.figure if content.outlook else None,
    ]
    return {figure.name: figure for figure in found if figure is not None}
