"""Make the cases that tests compare with Syncopy, and the data they are computed from.

python make_syncopy_reference.py tests/fields/ephys/data
cd tests/fields/ephys/data
python syncopy_numbers.py cases.json input.npz syncopy.npz  # in the environment of Syncopy
"""

import json
import sys
from pathlib import Path

import numpy as np

RATE = 200.0


def make_inputs():
    rng = np.random.default_rng(7)
    inputs = {}
    for name, lengths, channels in (
        ("equal", [80] * 3, 2),
        ("odd", [55] * 3, 2),
        ("unequal", [80, 48, 61], 2),
        ("many", [64] * 16, 2),
    ):
        total = sum(lengths)
        noise = rng.normal(size=(total, channels))
        if name == "many":
            # The second channel follows the first: something for Granger to find.
            noise[1:, 1] += 0.5 * noise[:-1, 0]
        slow = np.sin(np.arange(total) / RATE * 2 * np.pi * 30)[:, None]
        stops = np.cumsum(lengths)
        starts = stops - lengths
        inputs[name] = (noise + 0.7 * slow + 0.3).astype("f4")
        inputs[name + ".trl"] = np.column_stack([starts, stops, np.full(len(stops), -10)])
    return inputs


def make_cases():
    cases = []

    def add(name, call, data, before=(), **kwargs):
        case = {"name": name, "call": call, "input": data, "kwargs": kwargs}
        if before:
            case["before"] = list(before)
        cases.append(case)

    def freq(name, data="equal", **kwargs):
        add(name, "freqanalysis", data, **kwargs)

    for output in ("pow", "abs", "fourier", "real", "imag", "angle"):
        freq(f"mtmfft-{output}", output=output)
    freq("mtmfft-foi", foi=[3.1, 20, 47])
    freq("mtmfft-foilim", foilim=[10, 40])
    freq("mtmfft-line", polyremoval=1)
    freq("mtmfft-raw", polyremoval=None, taper=None)
    freq("mtmfft-pad", pad=1.0, foilim=[10, 40])
    freq("mtmfft-nextpow2", pad="nextpow2")
    freq("mtmfft-dpss", tapsmofrq=8)
    freq("mtmfft-dpss-kept", tapsmofrq=8, nTaper=3, keeptapers=True, output="fourier")
    freq("mtmfft-kaiser", taper="kaiser", taper_opt={"beta": 3.0})
    freq("mtmfft-fieldtrip", ft_compat=True, pad=1.0, foilim=[10, 40])
    freq("mtmfft-demean-taper", demean_taper=True)
    freq("mtmfft-average", keeptrials=False)
    freq("mtmfft-odd", "odd")
    freq("mtmfft-unequal", "unequal")
    freq("mtmfft-unequal-dpss", "unequal", tapsmofrq=8)
    freq("mtmconvol-half", method="mtmconvol", t_ftimwin=0.2, toi=0.5)
    freq("mtmconvol-all", method="mtmconvol", t_ftimwin=0.1, toi="all", foi=[20, 40])
    freq("mtmconvol-odd", "odd", method="mtmconvol", t_ftimwin=0.165, toi=0.7, polyremoval=1)
    freq("mtmconvol-dpss", method="mtmconvol", t_ftimwin=0.2, toi=0.25, tapsmofrq=10, output="pow")
    freq("mtmconvol-unequal", "unequal", method="mtmconvol", t_ftimwin=0.2, toi=0.5)
    freq("mtmconvol-average", method="mtmconvol", t_ftimwin=0.2, toi=0.5, keeptrials=False)
    freq("welch", method="welch", t_ftimwin=0.25, toi=0.5)
    freq("welch-odd", "odd", method="welch", t_ftimwin=0.2, toi=0.0)
    freq("wavelet", method="wavelet", foi=[10, 20, 40])
    freq("wavelet-auto", "odd", method="wavelet")
    freq("wavelet-phase", method="wavelet", foi=[10, 40], output="fourier")
    freq("wavelet-paul", method="wavelet", wavelet="Paul", order=6, foi=[10, 40], output="abs")
    freq("wavelet-dog", method="wavelet", wavelet="DOG", order=4, foi=[10, 40], output="real")
    freq("wavelet-ricker", method="wavelet", wavelet="Ricker", foi=[10, 40], output="real")
    freq("wavelet-toi", method="wavelet", foi=[20, 40], toi=[0.0, 0.05, 0.1, 0.15, 0.2])
    freq("wavelet-unequal", "unequal", method="wavelet", foi=[20, 40])
    freq("superlet", method="superlet", foi=[20, 40], order_max=4)
    freq("superlet-phase", method="superlet", foi=[20, 40], order_max=3, output="fourier")
    freq(
        "superlet-adaptive",
        "odd",
        method="superlet",
        foi=[10, 20, 30, 40, 50],
        order_max=5,
        order_min=2,
        c_1=2,
        adaptive=True,
    )

    def pre(name, data="equal", **kwargs):
        add(name, "preprocessing", data, **kwargs)

    pre("but-bp", filter_type="bp", freq=[20, 40])
    pre("but-lp", filter_type="lp", freq=30, order=6)
    pre("but-hp-onepass", filter_type="hp", freq=10, direction="onepass")
    pre("but-bs-unequal", "unequal", filter_type="bs", freq=[45, 55])
    pre("but-demean", filter_type="lp", freq=30, polyremoval=0)
    pre("firws-lp", filter_class="firws", filter_type="lp", freq=30, direction="onepass", order=40)
    pre("firws-hp", filter_class="firws", filter_type="hp", freq=30, direction="twopass", order=40)
    pre("firws-bp", filter_class="firws", filter_type="bp", freq=[20, 40], window="hann")
    pre("firws-bs", filter_class="firws", filter_type="bs", freq=[45, 55], window="blackman")
    pre(
        "firws-minphase",
        filter_class="firws",
        filter_type="lp",
        freq=30,
        direction="onepass-minphase",
        order=30,
    )
    pre("detrend", filter_class=None, polyremoval=1)
    pre("zscore", filter_class=None, zscore=True)
    pre("zscore-but", zscore=True, filter_type="lp", freq=30, polyremoval=1)
    pre("rectify", filter_type="bp", freq=[20, 40], rectify=True)
    pre("hilbert-abs", filter_type="bp", freq=[20, 40], hilbert="abs")
    pre("hilbert-angle", filter_type="bp", freq=[20, 40], hilbert="angle")
    pre("hilbert-complex", filter_type="bp", freq=[20, 40], hilbert="complex")
    add("resample", "resampledata", "equal", resamplefs=150)
    add("resample-unequal", "resampledata", "unequal", resamplefs=120, lpfreq=40)
    add("downsample", "resampledata", "equal", method="downsample", resamplefs=100)
    add("downsample-lp", "resampledata", "odd", method="downsample", resamplefs=50, lpfreq=20)
    for output in ("abs", "pow", "complex", "angle"):
        add(f"coh-{output}", "connectivityanalysis", "many", method="coh", output=output)
    add("coh-dpss", "connectivityanalysis", "equal", method="coh", tapsmofrq=8, foilim=[10, 40])
    add("csd", "connectivityanalysis", "equal", method="csd")
    add("csd-kept", "connectivityanalysis", "odd", method="csd", keeptrials=True, foi=[10, 30])
    add("ppc", "connectivityanalysis", "many", method="ppc")
    add("corr-odd", "connectivityanalysis", "odd", method="corr")
    add("corr-odd-kept", "connectivityanalysis", "odd", method="corr", keeptrials=True)
    add("corr-even", "connectivityanalysis", "equal", method="corr")
    add("granger", "connectivityanalysis", "many", method="granger", tapsmofrq=8)
    spectra = [{"call": "freqanalysis", "kwargs": {"output": "fourier"}}]
    add("granger-spectral", "connectivityanalysis", "many", before=spectra, method="granger")
    add("coh-spectral", "connectivityanalysis", "many", before=spectra, method="coh")
    add("timelock", "timelockanalysis", "equal", covariance=True)
    add("timelock-window", "timelockanalysis", "unequal", latency=[0.0, 0.2], covariance=True)
    return cases


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "input.npz", **make_inputs())
    cases = make_cases()
    (folder / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main(sys.argv[1])
