"""Let the real Syncopy compute cases, and keep its numbers.

Runs in an environment of its own (Python 3.11: ``esi-syncopy pytz "scipy<1.16"``):

    python syncopy_numbers.py CASES.json INPUT.npz OUTPUT.npz

A case has a name, a function of Syncopy, an input and arguments. An input NAME is
the stacked samples ``NAME`` and the trial definition ``NAME.trl`` in INPUT.
"""

import json
import sys
import traceback

import numpy as np
import syncopy as spy


def main(cases_path, input_path, output_path):
    inputs = np.load(input_path)
    results = {}
    with open(cases_path) as file:
        cases = json.load(file)
    for case in cases:
        name, rate = case["name"], case.get("samplerate", 200.0)
        data = spy.AnalogData(data=inputs[case["input"]].copy(), samplerate=rate)
        data.trialdefinition = inputs[case["input"] + ".trl"]
        try:
            for before in case.get("before", ()):
                data = getattr(spy, before["call"])(data, parallel=False, **before["kwargs"])
            found = getattr(spy, case["call"])(data, parallel=False, **case["kwargs"])
        except Exception:
            traceback.print_exc()
            print("FAILED", name, case)
            continue
        if case["call"] == "timelockanalysis":
            for part in ("avg", "var", "cov"):
                value = getattr(found, part)
                if value is not None:
                    results[f"{name}.{part}"] = value[()]
            continue
        results[name] = found.data[()]
        results[f"{name}.trl"] = found.trialdefinition
        results[f"{name}.samplerate"] = np.array(found.samplerate or 0.0)
        if getattr(found, "freq", None) is not None:
            results[f"{name}.freq"] = np.array(found.freq)
    np.savez_compressed(output_path, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
