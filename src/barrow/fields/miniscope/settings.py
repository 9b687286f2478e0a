"""Parameters of the pipeline, by step, with the names that MiniAn's pipeline has."""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from barrow.errors import InputError

DEFAULTS: dict[str, dict[str, Any]] = {
    "load_videos": {
        "pattern": None,
        "subset": None,
        "downsample": None,
        "downsample_strategy": "subset",
    },
    "glow_removal": {"enabled": True},
    "denoise": {"method": "median", "ksize": 7},
    "background_removal": {"method": "tophat", "wnd": 15},
    "estimate_motion": {"enabled": True, "max_sh": 20},
    "seeds_init": {
        "wnd_size": 1000,
        "method": "rolling",
        "stp_size": 500,
        "max_wnd": 15,
        "diff_thres": 3,
    },
    "pnr_refine": {"noise_freq": 0.06, "thres": 1},
    "ks_refine": {"sig": 0.05},
    "seeds_merge": {"thres_dist": 10, "thres_corr": 0.8, "noise_freq": 0.06},
    "initialize": {"thres_corr": 0.8, "wnd": 10, "noise_freq": 0.06},
    "init_merge": {"thres_corr": 0.8},
    "get_noise": {"noise_range": (0.06, 0.5)},
    "first_spatial": {"dl_wnd": 10, "sparse_penal": 0.01, "size_thres": (25, None)},
    "first_temporal": {"p": 2, "sparse_penal": 1, "add_lag": 20, "noise_freq": 0.25},
    "first_merge": {"thres_corr": 0.8},
    "second_spatial": {"dl_wnd": 10, "sparse_penal": 0.01, "size_thres": (25, None)},
    "second_temporal": {"p": 2, "sparse_penal": 1, "add_lag": 20, "noise_freq": 0.25},
    "second_merge": {"thres_corr": 0.8},
    "keep_active": {"least_skew": 0.9},
}
"""Parameters of each step. Those of ``denoise`` may be more: see :func:`cleaning.denoise`."""

_OPEN = ("denoise",)
_FREQUENCIES = ("noise_freq",)


def complete(params: Mapping[str, Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """Return all parameters: those given, and the defaults for the rest.

    Examples
    --------
    >>> complete({"denoise": {"ksize": 5}})["denoise"]
    {'method': 'median', 'ksize': 5}
    """
    found = deepcopy(DEFAULTS)
    for step, given in (params or {}).items():
        if step not in found:
            raise InputError(f"params names {step!r}, which is no step. Use {', '.join(found)}.")
        if not isinstance(given, Mapping):
            raise InputError(f"params[{step!r}] must be a dictionary, not {given!r}.")
        for name, value in given.items():
            if name not in found[step] and step not in _OPEN:
                raise InputError(f"params[{step!r}] has no {name!r}. Use {', '.join(found[step])}.")
            found[step][name] = value
    _check(found)
    return found


def key_of(value: Any) -> str:
    """Return parameters as text that is the same for the same values."""
    return json.dumps(value, sort_keys=True, default=str)


def _check(params: Mapping[str, Mapping[str, Any]]) -> None:
    for step, given in params.items():
        for name, value in given.items():
            if name in _FREQUENCIES and not 0 < value < 0.5:
                raise InputError(
                    f"params[{step!r}][{name!r}]={value!r}: a frequency is a part of the frame "
                    "rate, above 0 and below 0.5."
                )
    low, high = params["get_noise"]["noise_range"]
    if not 0 <= low < high <= 0.5:
        raise InputError(f"noise_range={low, high}: give two frequencies from 0 to 0.5.")
    seeds = params["seeds_init"]
    if seeds["method"] != "rolling":
        raise InputError(f"seeds_init method={seeds['method']!r} is unknown. Use 'rolling'.")
    if not 0 < seeds["stp_size"] or not 0 < seeds["wnd_size"]:
        raise InputError("seeds_init: wnd_size and stp_size are numbers of frames above 0.")
