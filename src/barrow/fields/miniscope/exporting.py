"""Results for other programs: NWB."""

from datetime import UTC, datetime
from os import PathLike, fspath
from typing import Any
from uuid import uuid4

import numpy as np

from barrow.errors import InputError
from barrow.fields.miniscope.results import Result

_SERIES = {"YrA": "Fluorescence", "C": "Denoised", "S": "Deconvolved"}
_UNKNOWN = float("nan")


def to_nwb(
    result: Result,
    path: str | PathLike[str],
    *,
    fps: float = 20.0,
    session_start: datetime | None = None,
    session_description: str = "miniscope recording",
    indicator: str = "unknown",
    location: str = "unknown",
) -> None:
    """Write cells, traces and motion as an NWB file, where its optical physiology has places.

    Footprints become pixel masks of a plane segmentation; ``YrA``, ``C`` and ``S`` the series
    ``Fluorescence``, ``Denoised`` and ``Deconvolved`` of its cells. The maximum projection, the
    background and the motion lie beside them.

    Parameters
    ----------
    result
        What :func:`run` returned or :func:`load` opens.
    fps
        Frames in a second, as they were analysed.
    session_start
        When the recording began, with its time zone; by default now.
    indicator, location
        Of the imaging plane, for example ``"GCaMP6f"`` and ``"CA1"``.
    """
    pynwb = _pynwb()
    if not fps > 0:
        raise InputError(f"fps={fps!r}: give frames in a second, for example 20.")
    fps = float(fps)
    file = pynwb.NWBFile(
        session_description=session_description,
        identifier=uuid4().hex,
        session_start_time=session_start or datetime.now(UTC),
    )
    plane = file.create_imaging_plane(
        name="ImagingPlane",
        optical_channel=pynwb.ophys.OpticalChannel(
            name="OpticalChannel", description="of the miniscope", emission_lambda=_UNKNOWN
        ),
        description="field of view of the miniscope",
        device=file.create_device("Miniscope"),
        excitation_lambda=_UNKNOWN,
        imaging_rate=fps,
        indicator=indicator,
        location=location,
    )
    module = file.create_processing_module("ophys", "cells and traces found by barrow.miniscope")
    _add_cells(pynwb, module, plane, result, fps)
    _add_images(pynwb, module, result)
    motion = pynwb.TimeSeries(
        name="Motion",
        description="shift (height, width) that puts each frame in place",
        data=np.asarray(result.motion),
        unit="pixels",
        rate=fps,
    )
    module.add(motion)
    with pynwb.NWBHDF5IO(fspath(path), "w") as io:
        io.write(file)


def _add_cells(pynwb: Any, module: Any, plane: Any, result: Result, fps: float) -> None:
    segmentation = pynwb.ophys.ImageSegmentation()
    module.add(segmentation)
    cells = segmentation.create_plane_segmentation(
        name="PlaneSegmentation", description="footprints of cells", imaging_plane=plane
    )
    for unit in range(result.units):
        footprint = np.asarray(result.A[unit])
        rows, cols = np.nonzero(footprint)
        weights = footprint[rows, cols]
        mask = zip(cols.tolist(), rows.tolist(), weights.tolist(), strict=True)
        cells.add_roi(pixel_mask=list(mask))
    if not result.units:
        return  # an empty table has no rows that a series could be of
    for name, place in _SERIES.items():
        region = cells.create_roi_table_region("all cells", region=list(range(result.units)))
        series = pynwb.ophys.Fluorescence(name=place)
        module.add(series)
        series.create_roi_response_series(
            name=name,
            data=np.ascontiguousarray(np.asarray(getattr(result, name)).T),
            rois=region,
            unit="grey levels",
            rate=fps,
        )


def _add_images(pynwb: Any, module: Any, result: Result) -> None:
    images = pynwb.base.Images(name="SummaryImages", description="of the movie, in place")
    for name in ("max_proj", "b"):
        image = np.asarray(getattr(result, name), np.float32)
        images.add_image(pynwb.image.GrayscaleImage(name=name, data=image))
    module.add(images)


def _pynwb() -> Any:
    try:
        import pynwb
    except ImportError:
        raise InputError(
            "NWB files are written by PyNWB, which is not installed: "
            "pip install 'barrow[miniscope]'."
        ) from None
    import pynwb.ophys

    return pynwb
