"""The face of coffea: code that is already written runs with its imports changed."""

import awkward as ak
import hist
import numpy as np
import pytest
from dask.distributed import performance_report

from barrow import collider as processor
from barrow.collider import schemas
from barrow.errors import StepError


class Processor(processor.ProcessorABC):
    """Written for coffea, with the accumulators of its older versions."""

    @property
    def accumulator(self):
        return processor.dict_accumulator(
            {
                "events": processor.defaultdict_accumulator(int),
                "pt": processor.column_accumulator(np.array([])),
                "files": processor.set_accumulator(),
                "names": processor.list_accumulator(),
                "total": processor.value_accumulator(int),
            }
        )

    def process(self, events):
        output = self.accumulator.identity()
        output["events"][events.metadata["dataset"]] += len(events)
        output["pt"] += processor.column_accumulator(ak.to_numpy(ak.flatten(events.Muon.pt)))
        output["files"].add(events.metadata["filename"])
        output["names"] += [events.metadata["dataset"]]
        output["total"] += len(events)
        output["mass"] = hist.Hist.new.Reg(20, 0, 100).Double().fill(events.MET.pt)
        return output

    def postprocess(self, accumulator):
        return accumulator


def test_the_code_of_a_page_about_metrics_runs_with_other_imports(slim, local_cluster, tmp_path):
    client, fileset = local_cluster.client, {"ttbar": [slim]}
    executor = processor.DaskExecutor(client=client)

    run = processor.Runner(executor=executor, schema=schemas.NanoAODSchema, savemetrics=True)

    output, metrics = run(fileset, "Events", processor_instance=Processor())

    with performance_report(filename=str(tmp_path / "dask-report.html")):
        again = run(fileset, "Events", processor_instance=Processor())

    assert {"bytesread", "columns", "entries", "processtime", "chunks"} <= metrics.keys()
    assert metrics["columns"] == ["MET_pt", "Muon_pt", "nMuon"]
    assert metrics["entries"] == output["total"].value == 5000
    assert output["events"] == {"ttbar": 5000}
    assert output["files"] == {slim}
    assert len(output["pt"].value) == int(ak.sum(ak.num(processor.open_events(slim).Muon)))
    assert again[0]["mass"] == output["mass"]
    assert "Dask Performance Report" in (tmp_path / "dask-report.html").read_text()


def test_a_chunk_size_that_cuts_clusters_is_advised_against(slim):
    run = processor.Runner(savemetrics=True, chunksize=300)
    _, metrics = run({"d": [slim]}, "Events", processor_instance=len)
    assert metrics["advice"].startswith("20 of 20 calls cut a cluster")
    assert metrics["advice"].endswith("leave out chunksize=300.")
    run.chunksize = 2000
    _, metrics = run({"d": [slim]}, "Events", processor_instance=len)
    assert "cluster" not in metrics["advice"]


def slow_count(events):
    found = 0
    for event in events:
        if len(event.Muon) == 2:
            found += 1
    return found


def quick_count(events):
    return int(ak.sum(ak.num(events.Muon) == 2))


def test_a_loop_over_events_is_found_and_shown_how_to_compile(slim):
    run = processor.run(slow_count, slim, cluster=False)
    assert run.output == processor.run(quick_count, slim, cluster=False).output
    (finding,) = (one for one in run.findings if one.code == "COD04")
    assert "`if len(event.Muon) == 2:`" in finding.claim or "`for event in" in finding.claim
    assert "100 events" in finding.evidence[0]
    assert "@numba.njit" in finding.advice


def test_a_processor_that_works_on_columns_has_no_such_finding(slim):
    run = processor.run(quick_count, slim, cluster=False)
    assert not any(finding.code == "COD04" for finding in run.findings)


def test_arrays_of_other_lengths_are_one_error_that_says_what_to_do(slim):
    with pytest.raises(StepError, match="column_accumulator"):
        processor.run(lambda events: ak.to_numpy(ak.flatten(events.Muon.pt)), slim, chunksize=1000)
