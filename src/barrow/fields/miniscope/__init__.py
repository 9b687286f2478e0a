"""Miniscope: from a movie larger than memory to cells and traces.

Parameters and results have the names that they have in MiniAn. Steps are plain functions of
arrays; :func:`run` walks them over a movie of any size.
"""

from barrow.fields.miniscope.api import get_optimal_chk, run
from barrow.fields.miniscope.cleaning import denoise, glow_removal, remove_background
from barrow.fields.miniscope.exploring import Exploration, explore
from barrow.fields.miniscope.exporting import to_nwb
from barrow.fields.miniscope.filming import film
from barrow.fields.miniscope.footprints import initA, unit_merge
from barrow.fields.miniscope.moving import apply_motion, estimate_motion, make_template
from barrow.fields.miniscope.opening import load_videos
from barrow.fields.miniscope.pictures import plot_contours, plot_motion, plot_traces
from barrow.fields.miniscope.registering import (
    calculate_centroids,
    cross_register,
    estimate_displacement,
)
from barrow.fields.miniscope.results import Result, load
from barrow.fields.miniscope.scoring import Score, score
from barrow.fields.miniscope.seeding import ks_refine, pnr_refine, seeds_init, seeds_merge
from barrow.fields.miniscope.settings import DEFAULTS
from barrow.fields.miniscope.simulating import Scene, Truth, simulate, write_video
from barrow.fields.miniscope.spatial import update_spatial
from barrow.fields.miniscope.summarising import write_summary
from barrow.fields.miniscope.temporal import compute_trace, update_temporal

__all__ = [
    "DEFAULTS",
    "Exploration",
    "Result",
    "Scene",
    "Score",
    "Truth",
    "apply_motion",
    "calculate_centroids",
    "compute_trace",
    "cross_register",
    "denoise",
    "estimate_displacement",
    "estimate_motion",
    "explore",
    "film",
    "get_optimal_chk",
    "glow_removal",
    "initA",
    "ks_refine",
    "load",
    "load_videos",
    "make_template",
    "plot_contours",
    "plot_motion",
    "plot_traces",
    "pnr_refine",
    "remove_background",
    "run",
    "score",
    "seeds_init",
    "seeds_merge",
    "simulate",
    "to_nwb",
    "unit_merge",
    "update_spatial",
    "update_temporal",
    "write_summary",
    "write_video",
]
