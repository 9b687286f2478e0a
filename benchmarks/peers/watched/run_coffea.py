"""Count pairs of muons with coffea's own runner, on a Dask cluster."""

import sys
from pathlib import Path

import awkward as ak
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import BaseSchema
from distributed import Client, LocalCluster


class Pairs(processor.ProcessorABC):
    def process(self, events):
        has_pair = ak.num(events.Muon_pt) >= 2
        leading = ak.to_numpy(ak.max(events.Muon_pt[has_pair], axis=1))
        counts, _ = np.histogram(leading, bins=50, range=(0, 200))
        return {"events": len(events), "pairs": int(ak.sum(has_pair)), "leading": counts}

    def postprocess(self, accumulator):
        return accumulator


def make_files(folder: Path) -> list[str]:
    rng = np.random.default_rng(1)
    paths = []
    for number in range(3):
        counts = rng.poisson(1.5, 40_000)
        muons = ak.unflatten(rng.exponential(25, counts.sum()), counts)
        paths.append(str(folder / f"events-{number}.root"))
        with uproot.recreate(paths[-1]) as file:
            file["Events"] = {"Muon_pt": muons}
    return paths


if __name__ == "__main__":
    files = make_files(Path(sys.argv[1]))
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        run = processor.Runner(
            executor=processor.DaskExecutor(client=client),
            schema=BaseSchema,
            chunksize=10_000,
        )
        found = run({"simulated": {"files": files, "treename": "Events"}}, Pairs())
        print(found["events"], found["pairs"])
