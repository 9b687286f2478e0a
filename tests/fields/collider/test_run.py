import json
import os
import pickle
import signal
from pathlib import Path

import awkward as ak
import hist
import numpy as np
import pytest

import barrow
from barrow.errors import InputError, OutputError, SkippedWarning
from barrow.fields import collider
from barrow.fields.collider.synthetic import make_events, write_nanoaod


class Dimuon:
    """Masses of pairs of muons, missing energy, and counts."""

    def process(self, events):
        muons = events.Muon[ak.num(events.Muon) == 2]
        muons = muons[ak.sum(muons.charge, axis=1) == 0]
        masses = hist.Hist.new.Reg(60, 60, 120, name="mass").Double()
        masses.fill((muons[:, 0] + muons[:, 1]).mass)
        met = hist.Hist.new.Reg(40, 0, 200, name="met").Double().fill(events.MET.pt)
        return {"mass": masses, "met": met, "events": {events.metadata["dataset"]: len(events)}}

    def postprocess(self, accumulator):
        return {**accumulator, "total": sum(accumulator["events"].values())}


class Fussy:
    """Counts events, and fails on some of them."""

    def __init__(self, bad):
        self.bad = frozenset(bad)

    def process(self, events):
        numbers = ak.to_numpy(events.event)
        if self.bad & set(numbers.tolist()):
            raise ValueError("an event that I do not like")
        return {"numbers": [int(number) for number in numbers]}


def numbers_of(events):
    return {"numbers": ak.to_numpy(events.event).tolist()}


@pytest.fixture
def several(tmp_path):
    """Three files of 1000, 50 and 2300 events."""
    return [
        str(write_nanoaod(tmp_path / f"{size}.root", size, cluster=400, seed=size))
        for size in (1000, 50, 2300)
    ]


def test_every_event_is_processed_once_and_in_order(several):
    run = collider.run(numbers_of, several)
    assert run.output["numbers"] == [*range(1000), *range(50), *range(2300)]
    assert run.metrics["entries"] == run.metrics["entries_planned"] == 3350
    assert run.skipped == ()


def test_histograms_are_those_of_numpy(slim):
    run = collider.run(Dimuon(), {"data": slim})
    drawn = make_events(5000)
    expected, _ = np.histogram(drawn["MET_pt"], bins=40, range=(0, 200))
    assert np.array_equal(run.output["met"].values(), expected)
    assert run.output["total"] == 5000
    assert run.metrics["columns"] == [
        "MET_pt", "Muon_charge", "Muon_eta", "Muon_mass", "Muon_phi", "Muon_pt", "nMuon",
    ]  # fmt: skip


def test_formats_and_chunk_sizes_give_the_same_histograms(slim, tmp_path):
    paths = [
        slim,
        write_nanoaod(tmp_path / "n.root", 5000, cluster=1000, format="rntuple"),
        write_nanoaod(tmp_path / "p.parquet", 5000, cluster=1000),
    ]
    found = [
        collider.run(Dimuon, {"d": path}, chunksize=n).output for path in paths for n in (None, 700)
    ]
    for other in found[1:]:
        assert found[0] == other


def test_chunks_end_with_clusters_unless_these_are_too_long(slim):
    def edges(size):
        calls = collider.run(numbers_of, slim, chunksize=size).metrics["calls"]
        return [call["stop"] for call in calls]

    assert edges(2500) == [2000, 4000, 5000]
    assert edges(600) == [500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000]


def test_no_more_than_some_chunks_of_each_dataset(several):
    run = collider.run(numbers_of, {"a": several[:1], "b": several[2:]}, chunksize=400, maxchunks=2)
    assert run.output["numbers"] == [*range(800), *range(800)]


def test_processors_see_what_the_fileset_says(slim):
    fileset = {"zz": {"files": {slim: "Events"}, "metadata": {"xsec": 2.5}}}

    def look(events):
        return [dict(events.metadata)]

    (seen,) = collider.run(look, fileset, chunksize=10**6).output
    assert seen["dataset"] == "zz"
    assert seen["xsec"] == 2.5
    assert (seen["filename"], seen["entrystart"], seen["entrystop"]) == (slim, 0, 5000)


def test_metrics_add_up_for_files_datasets_and_calls(several):
    metrics = collider.run(Dimuon, {"a": several[:2], "b": several[2:]}).metrics
    for name in ("entries", "read_bytes", "process_seconds", "chunks"):
        for group in ("datasets", "files"):
            total = sum(part[name] for part in metrics[group].values())
            assert total == pytest.approx(metrics[name])
    assert metrics["entries"] == sum(call["stop"] - call["start"] for call in metrics["calls"])
    assert 0 < metrics["bytesread"] < sum(os.path.getsize(path) for path in several)
    parts = ("open", "read", "decompress", "process", "merge")
    assert metrics["processtime"] == pytest.approx(sum(metrics[f"{p}_seconds"] for p in parts))


def test_the_runner_is_called_as_coffea_documents_it(slim):
    runner = collider.Runner(
        executor=collider.IterativeExecutor(), schema=collider.NanoAODSchema, savemetrics=True
    )
    fileset = {"data": [slim]}
    outputs = [
        runner(fileset, "Events", processor_instance=Dimuon()),
        runner(fileset, Dimuon(), treename="Events"),
        runner(fileset, treename="Events", processor_instance=Dimuon()),
        runner.run(fileset, "Events", Dimuon()),
    ]
    for output, metrics in outputs:
        assert output == outputs[0][0]
        assert metrics["entries"] == 5000
    runner.savemetrics = False
    assert runner(fileset, Dimuon())["total"] == 5000


def test_the_runner_refuses_what_it_does_not_know(slim):
    with pytest.raises(InputError, match="no processor"):
        collider.Runner()([slim])
    with pytest.raises(InputError, match="executor='fast'"):
        collider.Runner(executor="fast")([slim], numbers_of)
    with pytest.raises(InputError, match="on_error='ignore'"):
        collider.run(numbers_of, slim, on_error="ignore")


def test_filesets_may_be_globs_and_json(several, tmp_path):
    pattern = str(Path(several[0]).parent / "*.root")
    path = tmp_path / "fileset.json"
    path.write_text(json.dumps({"all": {"files": [pattern]}}))
    assert collider.run(len, str(path)).output == 3350
    with pytest.raises(InputError, match="No file matches"):
        collider.run(len, str(tmp_path / "*.rot"))


def test_many_small_files_are_few_tasks(tmp_path):
    small = write_nanoaod(tmp_path / "small.root", 20)
    paths = [tmp_path / f"s{number}.root" for number in range(60)]
    for path in paths:
        path.symlink_to(small)
    run = collider.run(numbers_of, [*map(str, paths)])
    assert len(run.output["numbers"]) == 1200
    assert run.engine_run.metrics["chunks"] < 30


def test_a_missing_file_stops_or_is_listed(several):
    gone = several[1].replace("50", "51")
    with pytest.raises(InputError, match=r"51.root cannot be opened.*tried 3 times"):
        collider.run(numbers_of, [several[0], gone])
    with pytest.warns(SkippedWarning, match="51.root"):
        run = collider.run(numbers_of, [several[0], gone, several[2]], on_error="skip")
    assert run.output["numbers"] == [*range(1000), *range(2300)]
    assert [(skip.path, skip.stop) for skip in run.skipped] == [(gone, None)]


def test_a_truncated_file_is_left_out(several):
    with open(several[1], "r+b") as file:
        file.truncate(200)
    with pytest.warns(SkippedWarning):
        run = collider.run(numbers_of, several, on_error="skip-file")
    assert run.output["numbers"] == [*range(1000), *range(2300)]
    assert [skip.path for skip in run.skipped] == [several[1]]


def break_basket(path, column, number):
    """Put noise into one basket of a column."""
    import uproot

    with uproot.open(path) as file:
        branch = file["Events"][column]
        start = branch.member("fBasketSeek")[number]
        size = branch.member("fBasketBytes")[number]
    with open(path, "r+b") as file:
        file.seek(start + size // 2)
        file.write(bytes(range(7, 207)))


@pytest.mark.parametrize("policy", ["skip", "skip-file"])
def test_a_broken_basket_costs_its_cluster_or_its_file(several, policy):
    break_basket(several[0], "event", 1)
    with pytest.raises(OSError, match=r"event of events .* cannot be read"):
        collider.run(numbers_of, several)
    with pytest.warns(SkippedWarning):
        run = collider.run(numbers_of, several, on_error=policy)
    rest = [*range(400), *range(800, 1000)] if policy == "skip" else []
    assert run.output["numbers"] == [*rest, *range(50), *range(2300)]
    lost = (400, 800) if policy == "skip" else (0, 1000)
    assert [(skip.path, skip.start, skip.stop) for skip in run.skipped] == [(several[0], *lost)]


def test_events_on_which_a_processor_fails_are_left_out_one_by_one(slim):
    with pytest.raises(ValueError, match="do not like"):
        collider.run(Fussy({77}), slim)
    with pytest.warns(SkippedWarning):
        run = collider.run(Fussy({77, 3210, 3211}), slim, on_error="skip")
    assert run.output["numbers"] == [n for n in range(5000) if n not in (77, 3210, 3211)]
    assert [(skip.start, skip.stop) for skip in run.skipped] == [(77, 78), (3210, 3212)]
    assert run.metrics["entries"] == 4997
    assert run.metrics["entries_skipped"] == 3


def test_a_processor_that_runs_out_of_memory_gets_fewer_events(slim):
    def hungry(events):
        if len(events) > 300:
            raise MemoryError
        return numbers_of(events)

    run = collider.run(hungry, slim)
    assert run.output["numbers"] == [*range(5000)]
    assert max(call["stop"] - call["start"] for call in run.metrics["calls"]) <= 300


def test_answers_that_cannot_be_added_are_one_error(several):
    answers = iter([3, "three", 3, 3, 3, 3, 3])
    with pytest.raises(barrow.errors.StepError, match="int for one chunk and str"):
        collider.run(lambda _: next(answers), several)


def test_an_output_is_made_once_and_known_again(slim, tmp_path):
    log = tmp_path / "log"

    def count(events):
        with open(log, "a") as file:
            file.write("called\n")
        return len(events)

    to = tmp_path / "out.pkl"
    assert collider.run(count, slim, to=to).output == 5000
    assert pickle.loads(to.read_bytes()) == 5000
    before = log.read_text()
    again = collider.run(count, slim, to=to)
    assert (again.output, again.metrics["entries"], log.read_text()) == (5000, 5000, before)
    with pytest.raises(OutputError, match="another output"):
        collider.run(lambda events: 2 * len(events), slim, to=to)
    assert not list(tmp_path.glob(".*partial"))


class Breaking:
    """Breaks down once it has done some chunks, as long as it is told to."""

    def __init__(self, switch, factor=1):
        self.switch = switch
        self.factor = factor

    def process(self, events):
        log = Path(self.switch)
        done = log.read_text().count("\n")
        if done == 3:
            raise KeyboardInterrupt
        with open(log, "a") as file:
            file.write(f"{events.metadata['entrystart']}\n")
        return {"numbers": [self.factor * n for n in ak.to_numpy(events.event).tolist()]}


def test_an_interrupted_run_goes_on_where_it_stopped(slim, tmp_path):
    log, to = tmp_path / "log", tmp_path / "out.pkl"
    log.touch()
    with pytest.raises(KeyboardInterrupt):
        collider.run(Breaking(str(log)), slim, to=to, chunksize=1000, cluster=False)
    assert collider.partial_output(to).value == {"numbers": [*range(3000)]}
    log.write_text("x\n" * 4)
    run = collider.run(Breaking(str(log)), slim, to=to, chunksize=1000, cluster=False)
    assert run.output["numbers"] == [*range(5000)]
    assert log.read_text().splitlines()[4:] == ["3000", "4000"]


def test_a_changed_processor_begins_anew(slim, tmp_path):
    log, to = tmp_path / "log", tmp_path / "out.pkl"
    log.touch()
    with pytest.raises(KeyboardInterrupt):
        collider.run(Breaking(str(log)), slim, to=to, chunksize=1000, cluster=False)
    log.write_text("x\n" * 4)
    run = collider.run(Breaking(str(log), factor=2), slim, to=to, chunksize=1000, cluster=False)
    assert run.output["numbers"] == [*range(0, 10_000, 2)]


def test_a_damaged_part_of_an_interrupted_run_is_done_again(slim, tmp_path):
    log, to = tmp_path / "log", tmp_path / "out.pkl"
    log.touch()
    with pytest.raises(KeyboardInterrupt):
        collider.run(Breaking(str(log)), slim, to=to, chunksize=1000, cluster=False)
    part = sorted((tmp_path / ".out.pkl.partial").rglob("*.part"))[1]
    part.write_bytes(part.read_bytes()[:-3])
    log.write_text("x\n" * 4)
    run = collider.run(Breaking(str(log)), slim, to=to, chunksize=1000, cluster=False)
    assert run.output["numbers"] == [*range(5000)]
    assert log.read_text().splitlines()[4:] == ["1000", "3000", "4000"]


def test_a_killed_worker_costs_nothing(slim, tmp_path):
    mark, home = tmp_path / "mark", os.getpid()

    def deadly(events):
        if os.getpid() != home and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"numbers": [int(number) for number in events.event]}

    with barrow.cluster("local", workers=2, threads=1, memory="600MB") as cluster:
        run = collider.run(deadly, slim, chunksize=1000, cluster=cluster)
    assert run.output["numbers"] == [*range(5000)]
    assert run.engine_run.metrics["lost"] >= 1


def test_worker_processes_make_the_same_as_one_after_the_other(slim, local_cluster, monkeypatch):
    monkeypatch.chdir(Path(slim).parent)  # not where the workers are

    def masses(events):
        return hist.Hist.new.Reg(60, 0, 120).Double().fill(ak.flatten(events.Muon.pt))

    run = collider.run(masses, Path(slim).name, chunksize=1000)
    assert run.metrics["engine"] == "dask"
    assert len({call["worker"] for call in run.metrics["calls"]} - {os.getpid()}) >= 1
    assert run.output == collider.run(masses, slim, cluster=False).output


def test_parts_of_files_count_where_not_all_was_asked_for(several):
    run = collider.run(numbers_of, several, chunksize=400, maxchunks=4, on_error="skip-file")
    assert run.output["numbers"] == [*range(1000), *range(50)]


def test_a_processor_that_needs_more_than_is_allowed_is_one_error(slim):
    with pytest.raises(barrow.errors.BudgetError, match=r"needs more than the .* this run may use"):
        collider.run(lambda _: np.zeros(2**28), slim, memory="400MB")
