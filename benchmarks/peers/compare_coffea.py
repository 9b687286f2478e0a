"""Do processors of coffea give the same output with barrow, unchanged?

    COFFEA/bin/pip install -e .
    COFFEA/bin/python benchmarks/peers/compare_coffea.py

Run in an environment that has both. The processors are those of coffea's own tests and the one
of its documentation. Each runs with coffea's Runner, with barrow's and coffea's events, and
with barrow's own events, where these suffice.
"""

import tempfile
import warnings
from pathlib import Path

import awkward as ak
import hist
from coffea import processor
from coffea.nanoevents import BaseSchema, NanoAODSchema
from coffea.processor.test_items import NanoEventsProcessor, NanoTestProcessor

from barrow import collider
from barrow.fields.collider.synthetic import write_nanoaod


class MyProcessor(processor.ProcessorABC):
    """As in coffea's documentation of processors."""

    def process(self, events):
        dataset = events.metadata["dataset"]
        muons = events.Muon
        h_mass = (
            hist.Hist.new.StrCat(["opposite", "same"], name="sign")
            .Log(1000, 0.2, 200.0, name="mass", label=r"$m_{\mu\mu}$ [GeV]")
            .Int64()
        )
        cut = (ak.num(muons) == 2) & (ak.sum(muons.charge, axis=1) == 0)
        dimuon = muons[cut][:, 0] + muons[cut][:, 1]
        h_mass.fill(sign="opposite", mass=dimuon.mass)
        cut = (ak.num(muons) == 2) & (ak.sum(muons.charge, axis=1) != 0)
        dimuon = muons[cut][:, 0] + muons[cut][:, 1]
        h_mass.fill(sign="same", mass=dimuon.mass)
        return {dataset: {"entries": len(events), "mass": h_mass}}

    def postprocess(self, accumulator):
        pass


class Distances(processor.ProcessorABC):
    """Distances of particles, and accumulators of older processors."""

    def process(self, events):
        near = events.Muon.nearest(events.Jet)
        distance = ak.flatten(events.Muon.delta_r(near))
        output = {
            "count": processor.defaultdict_accumulator(int),
            "near": hist.Hist.new.Reg(50, 0, 5).Int64().fill(ak.drop_none(distance)),
            "files": processor.set_accumulator({Path(events.metadata["filename"]).name}),
        }
        output["count"][events.metadata["dataset"]] += len(events)
        return output

    def postprocess(self, accumulator):
        return accumulator


def main() -> None:
    warnings.simplefilter("ignore")
    cases = [
        (NanoEventsProcessor(mode="virtual"), NanoAODSchema, "nanoaod"),
        (NanoTestProcessor(mode="virtual"), BaseSchema, "flat"),
        (MyProcessor(), NanoAODSchema, "nanoaod"),
        (Distances(), NanoAODSchema, "nanoaod"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        first, second = (
            str(write_nanoaod(f"{folder}/{n}.root", n, cluster=10_000, seed=n))
            for n in (30_000, 20_000)
        )
        meta = {"checkusermeta": True}
        fileset = {
            "ZJets": {"files": {first: "Events"}, "metadata": {**meta, "someusermeta": "hello"}},
            "Data": {"files": {second: "Events"}, "metadata": {**meta, "someusermeta2": "world"}},
        }
        for work, schema, own in cases:
            executor = processor.IterativeExecutor(status=False)
            runner = processor.Runner(executor, schema=schema, chunksize=10_000)
            expected = runner(fileset, treename="Events", processor_instance=work)
            for events in (schema, own):
                found = collider.Runner(schema=events, quiet=True)(
                    fileset, "Events", processor_instance=work
                )
                answer = "the same" if found == expected else "NOT THE SAME"
                kind = "coffea's events" if events is schema else "barrow's events"
                print(f"{type(work).__name__:22} {kind:16} {answer}", flush=True)


if __name__ == "__main__":
    main()
