"""Run one row of benchmarks/collider.py, in an environment that has what the row needs.

python collider_run.py WAY PATH [CHUNKSIZE]

WAY is plain (uproot and Numba, the file opened once), barrow, or iterative, futures, dask for
coffea. What is measured begins after the imports and after Numba has compiled, on a small file
beside PATH, and ends when all processes have.
"""

import hashlib
import json
import os
import resource
import sys
import time
from pathlib import Path

import awkward as ak
import hist
import numba
import numpy as np


@numba.njit(cache=True)
def find_masses(counts, pt, eta, phi, charge):
    """Return the masses of pairs in events of two muons of opposite charge."""
    masses = np.empty(len(counts), np.float32)
    found = 0
    first = 0
    for count in counts:
        if count == 2 and charge[first] != charge[first + 1]:
            opening = np.cosh(eta[first] - eta[first + 1]) - np.cos(phi[first] - phi[first + 1])
            masses[found] = np.sqrt(2 * pt[first] * pt[first + 1] * opening)
            found += 1
        first += count
    return masses[:found]


def fill(masses, met):
    """Return both histograms."""
    return {
        "mass": hist.Hist.new.Reg(120, 0, 120, name="mass").Double().fill(masses),
        "met": hist.Hist.new.Reg(100, 0, 200, name="met").Double().fill(met),
    }


class Dimuon:
    """The same work as a processor."""

    def process(self, events):
        muons = events.Muon
        columns = [ak.to_numpy(ak.flatten(muons[c])) for c in ("pt", "eta", "phi", "charge")]
        masses = find_masses(ak.to_numpy(ak.num(muons)), *columns)
        return fill(masses, ak.to_numpy(events.MET.pt))

    def postprocess(self, accumulator):
        return accumulator


def run_plain(path, chunksize):
    """Read and compute with no library for it."""
    import uproot

    names = ["Muon_pt", "Muon_eta", "Muon_phi", "Muon_charge"]
    total = None
    with uproot.open(path) as file:
        tree = file["Events"]
        step = chunksize or tree.num_entries
        for start in range(0, tree.num_entries, step):
            part = {"entry_start": start, "entry_stop": start + step}
            arrays = [tree[name].array(**part) for name in names]
            counts = ak.to_numpy(ak.num(arrays[0]))
            masses = find_masses(counts, *(ak.to_numpy(ak.flatten(array)) for array in arrays))
            found = fill(masses, tree["MET_pt"].array(library="np", **part))
            total = found if total is None else {k: total[k] + found[k] for k in found}
    return total, {}


def run_barrow(path, chunksize):
    from barrow import collider

    done = collider.run(Dimuon(), {"data": [path]}, chunksize=chunksize, quiet=True)
    return done.output, {
        k: done.metrics[k] for k in ("chunks", "bytesread", "processtime", "engine")
    }


def run_coffea(executor):
    def run(path, chunksize):
        from coffea import processor
        from coffea.nanoevents import NanoAODSchema

        class Wrapped(Dimuon, processor.ProcessorABC):
            pass

        given = {} if chunksize is None else {"chunksize": chunksize}
        runner = processor.Runner(executor, schema=NanoAODSchema, savemetrics=True, **given)
        output, metrics = runner(
            {"data": {"files": {path: "Events"}}}, treename="Events", processor_instance=Wrapped()
        )
        return output, {k: metrics[k] for k in ("chunks", "bytesread", "processtime")}

    return run


def choose(way):
    """Return what runs, and what ends it."""
    if way == "plain":
        return run_plain, None
    if way == "barrow":
        import barrow.fields.collider  # noqa: F401

        return run_barrow, None
    from coffea import processor

    if way == "iterative":
        return run_coffea(processor.IterativeExecutor(status=False)), None
    if way == "futures":
        return run_coffea(processor.FuturesExecutor(workers=2, status=False)), None
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    client = Client(cluster)

    def end():
        client.close()
        cluster.close()

    return run_coffea(processor.DaskExecutor(client=client, status=False)), end


def cpu_seconds():
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)


def main(way, path, chunksize=None):
    chunksize = int(chunksize) if chunksize else None
    run, end = choose(way)
    run(str(Path(path).parent / "small.root"), chunksize)
    began, cpu = time.perf_counter(), cpu_seconds()
    output, facts = run(path, chunksize)
    wall = time.perf_counter() - began
    if end is not None:
        end()  # the CPU of workers is known when they have ended
    cpu = cpu_seconds() - cpu
    values = [output[name].values(flow=True) for name in sorted(output)]
    digest = hashlib.blake2b(np.concatenate(values).tobytes(), digest_size=8).hexdigest()
    took = {"wall": wall, "cpu": cpu, "histograms": digest, **facts}
    print("TOOK " + json.dumps(took), flush=True)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
