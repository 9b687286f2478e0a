"""Pipelines in stages: planned before they run, bounded in memory, clean afterwards."""

import json
import operator
from dataclasses import replace

import numpy as np
import pytest
import xarray

import barrow
from barrow.errors import BudgetError, InputError
from barrow.explaining import explain
from barrow.model.source import Reader, Source

FRAMES, HEIGHT, WIDTH = 600, 64, 96
MOVIE = np.random.default_rng(0).integers(0, 1000, (FRAMES, HEIGHT, WIDTH), "u2")
DIMS = ("frame", "height", "width")
# With 12 MB for all that a task holds, no function can be given more.
LIMIT = 3 * MOVIE.nbytes // 4


def level(x):
    """Needs whole images."""
    return x - x.mean(axis=(1, 2), keepdims=True, dtype="f8").astype("f4")


def order(x):
    """Needs all frames."""
    return np.sort(x, axis=0)


def rank_rows(x):
    """Needs whole images again."""
    return np.sort(x, axis=1)


def steps(*functions):
    whole = {level: ("height", "width"), order: ("frame",), rank_rows: ("height", "width")}
    return [barrow.Step(func, whole=whole[func]) for func in functions]


class Watched(Reader):
    """Refuses to give much at once."""

    def __init__(self, limit_bytes):
        self.limit_bytes = limit_bytes
        self.largest = 0

    def __call__(self, ranges):
        block = MOVIE[tuple(slice(start, stop) for start, stop in ranges)].copy()
        self.largest = max(self.largest, block.nbytes)
        assert block.nbytes <= self.limit_bytes, f"{block.nbytes} bytes at once"
        return block


@pytest.fixture
def strict(monkeypatch):
    """What is large in practice is 7 MB here."""
    monkeypatch.setattr("barrow.model.reading.MUCH_BYTES", 2**20)
    monkeypatch.setattr("barrow.composing.FUSED_BYTES", 2**20)


@pytest.fixture
def movie(strict):
    return barrow.open(MOVIE, dims=DIMS)


@pytest.fixture
def watched(strict):
    return Source("movie", dict(zip(DIMS, MOVIE.shape, strict=True)), MOVIE.dtype, Watched(LIMIT))


@pytest.fixture
def runs(own_cache):
    """Return the folders of runs that are there, so that leftovers are seen."""

    def list_runs():
        folder = own_cache / "runs"
        return set(folder.iterdir()) if folder.exists() else set()

    return list_runs


def test_everything_is_planned_before_anything_runs(movie):
    plan = barrow.plan(steps(level, order), movie)
    assert [stage.steps for stage in plan.stages] == [("level",), ("order",)]
    assert plan.before[0].chunks["height"] == HEIGHT
    assert plan.chunks["frame"] == FRAMES
    assert "2 stages" in str(plan)


def test_the_result_is_that_of_the_plain_calls(movie):
    plan = barrow.plan(steps(level, order, rank_rows), movie)
    assert len(plan.before) == 2
    run = barrow.run(plan, quiet=True)
    np.testing.assert_array_equal(run.result, rank_rows(order(level(MOVIE))))
    assert [stage.steps for stage in run.plan.stages] == [("level",), ("order",), ("rank_rows",)]


def test_never_is_everything_asked_for_at_once(watched):
    # Neither the movie nor the result in between fits the memory that is allowed.
    plan = barrow.plan(steps(level, order), watched, memory="12MB", cluster=False)
    assert plan.before[0].result == "store"
    run = barrow.run(plan, quiet=True)
    np.testing.assert_array_equal(run.result[...], order(level(MOVIE)))
    assert 0 < watched.read.largest <= LIMIT


def test_nothing_large_is_computed_for_a_step_that_drops_a_dimension(watched):
    # That it needs all frames is found out by calling it.
    last = barrow.Step(lambda x: np.median(x, axis=0), name="middle")
    run = barrow.run([*steps(level), last], watched, memory="12MB", cluster=False, quiet=True)
    np.testing.assert_array_equal(run.result, np.median(level(MOVIE), axis=0))
    assert [stage.name for stage in run.plan.stages] == ["level", "middle"]


def test_a_step_that_can_be_cut_alike_is_fused_although_little_was_read(strict, monkeypatch):
    monkeypatch.setattr("barrow.model.reading.MUCH_BYTES", 0)
    monkeypatch.setattr("barrow.model.reading.MUCH_SHARE", 0.0)
    plan = barrow.plan([*steps(level), barrow.Step(np.negative)], barrow.open(MOVIE, dims=DIMS))
    assert plan.steps == ("level", "negative")
    assert plan.before == ()


def test_the_store_between_suits_both_sides(strict):
    lengths = dict(zip(DIMS, (4000, 64, 96), strict=True))
    source = barrow.open(np.broadcast_to(np.uint16(7), tuple(lengths.values())), dims=DIMS)
    plan = barrow.plan(steps(level, order), source, memory="64MB", cluster=False)
    first = plan.before[0]
    assert first.result == "store"
    assert first.chunks["frame"] % first.stored_chunks["frame"] == 0
    assert first.stored_chunks["height"] * first.stored_chunks["width"] < 64 * 96
    # The reader takes whole stored chunks.
    for dim in ("height", "width"):
        stored = first.stored_chunks[dim]
        assert plan.chunks[dim] % stored == 0 or plan.chunks[dim] == lengths[dim]


def test_a_small_result_between_stays_in_memory(movie):
    plan = barrow.plan(steps(level, order), movie, memory="1GB")
    assert plan.before[0].result == "memory"
    assert plan.memory_bytes <= 10**9 - plan.before[0].result_bytes


def test_what_lies_between_is_removed(watched, runs):
    before = runs()
    run = barrow.run(steps(level, order), watched, memory="12MB", cluster=False, quiet=True)
    assert runs() - before == {run.folder}
    assert run.plan.before[0].measured["chunks"] == run.plan.before[0].n_chunks


def test_what_lies_between_is_removed_when_a_stage_fails(movie, runs):
    def fails(x):
        if len(x) == FRAMES and x.shape[1:] == (HEIGHT, WIDTH):
            raise OSError("no more")
        return x

    before = runs()
    last = barrow.Step(fails, whole=("frame",))
    plan = barrow.plan([*steps(level), last], movie, cluster=False)
    with pytest.raises(OSError, match="no more"):
        barrow.run(plan.with_chunks(height=HEIGHT, width=WIDTH), quiet=True)
    assert runs() == before


def test_a_pipeline_in_stages_may_end_in_a_reduction(movie, runs):
    last = barrow.Step(
        lambda x: x.max(axis=0).sum(dtype="f8"), whole=("frame",), combine=operator.add
    )
    run = barrow.run([*steps(level), last], movie, quiet=True)
    assert run.result == pytest.approx(level(MOVIE).max(axis=0).sum(dtype="f8"))
    assert len(run.plan.before) == 1
    assert (run.folder / "plan.json").exists()


@pytest.mark.parametrize("memory", [None, "500MB"])
def test_stages_run_on_a_cluster_as_well(movie, local_cluster, memory):
    plan = barrow.plan(steps(level, order), movie, memory=memory)
    assert [stage.engine for stage in plan.stages] == ["dask", "dask"]
    first = replace(plan.before[0], result="store" if memory else "memory", stored_chunks={})
    run = barrow.run(replace(plan, before=(first,)), quiet=True)
    np.testing.assert_array_equal(run.result, order(level(MOVIE)))


def test_labels_come_through_all_stages(strict):
    frames = np.arange(FRAMES) / 30
    image = xarray.DataArray(MOVIE, dims=DIMS, coords={"frame": frames}, name="movie")
    thin = barrow.Step(lambda x: x[::2], name="thin", whole=("frame",))
    result = barrow.run([*steps(level, order, rank_rows), thin], image, quiet=True).result
    np.testing.assert_array_equal(result.values, rank_rows(order(level(MOVIE)))[::2])
    assert result.name == "movie"
    assert "frame" not in result.coords


def test_coordinates_of_a_dimension_that_changed_are_not_taken_for_its_own(strict):
    image = xarray.DataArray(MOVIE, dims=DIMS, coords={"frame": np.arange(FRAMES)}, name="movie")
    thin = barrow.Step(lambda x: np.sort(x, axis=0)[1:], name="thin", whole=("frame",))
    run = barrow.run([thin, *steps(rank_rows)], image, quiet=True)
    assert len(run.plan.before) == 1
    assert "frame" not in run.result.coords


def test_a_stored_result_is_found_again_without_running_the_stages(watched, tmp_path, monkeypatch):
    identified = replace(watched, read=Known(MOVIE.nbytes))
    first = barrow.run(steps(level, order), identified, to=tmp_path / "out.zarr", quiet=True)
    monkeypatch.setattr("barrow.pipelines._settle", None)
    again = barrow.run(steps(level, order), identified, to=tmp_path / "out.zarr", quiet=True)
    np.testing.assert_array_equal(again.result[...], first.result[...])
    assert again.plan.measured["chunks"] == first.metrics["chunks"]


class Known(Watched):
    """Data that can be told apart from others."""

    def identity(self):
        return "the movie"


def test_chunks_edited_by_hand_are_kept(movie):
    plan = barrow.plan(steps(level, order), movie, cluster=False)
    first = plan.before[0].with_chunks(frame=60)
    edited = replace(plan.with_chunks(height=8), before=(first,))
    run = barrow.run(edited, quiet=True)
    np.testing.assert_array_equal(run.result, order(level(MOVIE)))
    assert run.plan.before[0].measured["chunks"] == 10
    assert run.plan.chunks["height"] == 8


def test_a_plan_can_run_twice(movie):
    plan = barrow.plan(steps(level, order), movie, cluster=False)
    first = barrow.run(plan, quiet=True)
    second = barrow.run(first.plan, quiet=True)
    np.testing.assert_array_equal(first.result, second.result)


def test_after_the_run_the_plan_shows_what_was_measured(movie, tmp_path):
    run = barrow.run(steps(level, order), movie, folder=tmp_path / "run", quiet=True)
    stages = (*run.plan.before, run.plan)
    spent = sum(stage.measured["wall_seconds"] for stage in stages)
    assert spent == pytest.approx(run.metrics["wall_seconds"])
    assert run.plan.measured["chunks"] == run.plan.n_chunks
    saved = barrow.Plan.load(tmp_path / "run" / "plan.json")
    assert saved.measured == run.plan.measured
    assert [stage.measured["chunks"] > 0 for stage in saved.stages] == [True, True]
    assert str(run.plan).count("predicted") >= 2
    assert "measured" in str(run.plan)


# A plan that was saved is used again.


def count_calls(func):
    def counted(x):
        counted.calls += 1
        return func(x)

    counted.calls = 0
    return counted


def test_a_saved_plan_is_used_without_measuring(tmp_path):
    func = count_calls(np.sqrt)
    plan = barrow.plan(func, MOVIE, cluster=False).with_chunks(dim_0=50)
    plan.save(tmp_path / "plan.json")
    func.calls = 0
    again = barrow.plan(func, MOVIE, cluster=False, like=tmp_path / "plan.json")
    assert func.calls <= 3
    assert again.chunks == plan.chunks
    assert again.cost == replace(plan.cost, probing_seconds=0.0)
    np.testing.assert_array_equal(barrow.run(again, quiet=True).result, np.sqrt(MOVIE))


def test_map_run_and_reduce_take_a_plan_as_well(tmp_path):
    longer = np.concatenate([MOVIE, MOVIE])
    plan = barrow.plan(np.sqrt, MOVIE, cluster=False)
    out = barrow.map(np.sqrt, longer, cluster=False, like=plan)
    np.testing.assert_array_equal(out, np.sqrt(longer))
    run = barrow.run([barrow.Step(np.sqrt)], longer, cluster=False, like=plan)
    np.testing.assert_array_equal(run.result, np.sqrt(longer))
    assert run.plan.chunks == plan.chunks
    total = barrow.plan(np.sum, MOVIE, combine=operator.add, cluster=False)
    found = barrow.reduce(np.sum, longer, cluster=False, like=total)
    assert found == longer.sum()


def test_a_plan_in_stages_is_used_again_for_a_longer_movie(movie, tmp_path):
    plan = barrow.plan(steps(level, order), movie, cluster=False)
    plan.save(tmp_path / "plan.json")
    longer = barrow.open(np.concatenate([MOVIE, MOVIE[:100]]), dims=DIMS)
    run = barrow.run(
        steps(level, order), longer, cluster=False, like=tmp_path / "plan.json", quiet=True
    )
    np.testing.assert_array_equal(run.result, order(level(np.concatenate([MOVIE, MOVIE[:100]]))))
    assert run.plan.before[0].chunks == plan.before[0].chunks
    assert run.plan.chunks == {**plan.chunks, "frame": 700}


def test_chunks_that_were_edited_in_the_file_are_honoured(movie, tmp_path):
    path = tmp_path / "plan.json"
    barrow.plan(steps(level, order), movie, cluster=False, memory="1GB").save(path)
    saved = json.loads(path.read_text())
    saved["before"][0]["chunks"]["frame"] = 33
    saved["chunks"]["width"] = 7
    path.write_text(json.dumps(saved))
    plan = barrow.plan(steps(level, order), movie, cluster=False, like=path)
    assert plan.before[0].chunks["frame"] == 33
    run = barrow.run(plan, quiet=True)
    np.testing.assert_array_equal(run.result, order(level(MOVIE)))
    assert run.plan.chunks["width"] == 7


def test_a_plan_for_other_steps_is_refused_before_anything_is_called(movie):
    plan = barrow.plan(steps(level, order), movie, cluster=False)
    with pytest.raises(InputError, match=r"for the steps \['level', 'order'\], but these are"):
        barrow.plan(steps(level, rank_rows), movie, like=plan)


def test_a_plan_that_does_not_fit_is_one_error_and_leaves_nothing(tmp_path):
    plan = barrow.plan(np.sqrt, MOVIE, cluster=False)
    with pytest.raises(InputError, match="it was made for uint16, but 'array' is float64"):
        barrow.map(np.sqrt, MOVIE.astype("f8"), like=plan, to=tmp_path / "out.zarr")
    with pytest.raises(InputError, match="it cuts the dimensions"):
        barrow.map(np.sqrt, MOVIE[0], like=plan, to=tmp_path / "out.zarr")
    with pytest.raises(BudgetError, match="Allow more with memory="):
        barrow.map(np.sqrt, MOVIE, like=plan, memory=1000, to=tmp_path / "out.zarr")
    with pytest.raises(InputError, match="like=: workers is 0"):
        barrow.map(np.sqrt, MOVIE, like=replace(plan, workers=0), to=tmp_path / "out.zarr")
    with pytest.raises(InputError, match="like=3 is no plan"):
        barrow.map(np.sqrt, MOVIE, like=3, to=tmp_path / "out.zarr")
    with pytest.raises(InputError, match="a plan is run as it is"):
        barrow.run(plan, like=plan)
    assert list(tmp_path.iterdir()) == []


def test_the_last_stage_is_taken_up_where_it_was(movie, tmp_path):
    log, barrier = tmp_path / "log", tmp_path / "barrier"

    def careful(x):
        if barrier.exists() and len(log.read_text()) == 3:
            raise OSError("no more")
        with open(log, "a") as file:
            file.write("x")
        return np.sort(x, axis=0)

    pipeline = [*steps(level), barrow.Step(careful, whole=("frame",))]
    plan = barrow.plan(pipeline, movie, to=tmp_path / "out.zarr", cluster=False)
    # Chunks that are thought to be slow are noted one by one.
    plan = replace(plan.with_chunks(height=8, width=WIDTH), seconds=1000.0)
    log.write_text("")
    barrier.touch()
    with pytest.raises(OSError, match="no more"):
        barrow.run(plan, quiet=True)
    barrier.unlink()
    run = barrow.run(plan, quiet=True)
    assert run.metrics["chunks_found"] == 3
    assert len(log.read_text()) == HEIGHT // 8
    np.testing.assert_array_equal(run.result[...], order(level(MOVIE)))


def test_the_next_stage_is_measured_again_on_what_is_really_there(movie):
    plan = barrow.plan(steps(level, order), movie, cluster=False)
    run = barrow.run(plan, quiet=True)
    assert run.plan.before[0].cost == plan.before[0].cost
    assert run.plan.cost != plan.cost


@pytest.fixture
def interrupted(movie, tmp_path):
    """Return a pipeline with a place, whose second stage fails until a file is there."""
    log, is_mended = tmp_path / "log", tmp_path / "mended"

    def counted(x):
        with log.open("a") as file:
            file.write("x" * (len(x) == 50))
        return level(x)

    def fails(x):
        if not is_mended.exists() and x.shape[1] == 23:
            raise OSError("no more")
        return np.sort(x, axis=0)

    pipeline = [
        barrow.Step(counted, whole=("height", "width")),
        barrow.Step(fails, whole=("frame",)),
    ]

    def run(to="out.zarr", resume=True):
        plan = barrow.plan(
            pipeline, movie, to=tmp_path / to, resume=resume, cluster=False, memory="40MB"
        )
        (first,) = plan.before
        first = first.with_chunks(frame=50)
        plan = replace(plan.with_chunks(height=23), before=(replace(first, result="store"),))
        return barrow.run(plan, quiet=True)

    def count():
        return log.read_text().count("x")

    return run, count, is_mended


def test_a_stage_that_was_finished_is_not_done_again(interrupted, tmp_path):
    run, count, is_mended = interrupted
    with pytest.raises(OSError, match="no more"):
        run()
    assert (tmp_path / ".out.zarr.stages").is_dir()
    done = count()
    is_mended.touch()
    made = run()
    assert count() == done
    np.testing.assert_array_equal(made.result[...], np.sort(level(MOVIE), axis=0))
    assert not (tmp_path / ".out.zarr.stages").exists()
    assert not (tmp_path / ".out.zarr.partial").exists()


def test_a_finished_stage_is_done_again_if_nothing_may_be_resumed(interrupted):
    run, count, is_mended = interrupted
    with pytest.raises(OSError, match="no more"):
        run()
    done = count()
    is_mended.touch()
    made = run(resume=False)
    assert count() == 2 * done
    np.testing.assert_array_equal(made.result[...], np.sort(level(MOVIE), axis=0))


def test_what_other_steps_have_left_between_is_not_used(interrupted, movie, tmp_path):
    run, _, _ = interrupted
    with pytest.raises(OSError, match="no more"):
        run()
    plan = barrow.plan(steps(level, order), movie, to=tmp_path / "out.zarr", cluster=False)
    (first,) = plan.before
    made = barrow.run(replace(plan, before=(replace(first, result="store"),)), quiet=True)
    np.testing.assert_array_equal(made.result[...], order(level(MOVIE)))


def test_a_long_stage_is_stored_although_it_fits_the_memory(movie, tmp_path, monkeypatch):
    monkeypatch.setattr("barrow.pipelines.LONG_STAGE_SECONDS", 0.0)
    plan = barrow.plan(steps(level, order), movie, to=tmp_path / "out.zarr", cluster=False)
    assert plan.before[0].result == "store"
    run = barrow.run(plan, quiet=True)
    np.testing.assert_array_equal(run.result[...], order(level(MOVIE)))


def test_the_record_of_a_pipeline_holds_all_its_stages(movie, tmp_path):
    run = barrow.run(steps(level, order), movie, to=tmp_path / "out.zarr", quiet=True)
    record = barrow.record(run.folder)
    (stage,) = record.facts["stages"]
    assert stage["name"] == "level"
    assert set(record.table("stage_task")["step"]) == {"level"}
    assert len(record.table("stage_task")) == run.plan.before[0].n_chunks
    report = explain(run.folder)
    assert {step.name for step in report.steps} == {"level", "order"}
    assert len(report.timeline.tasks["lane"]) > len(record.table("task"))
    assert "the last of 2 stages" in report.headline
    assert report.seconds >= record.facts["ended"] - stage["began"] - 0.01


def test_the_numbers_of_a_pipeline_are_those_of_all_its_stages(movie, tmp_path):
    run = barrow.run(steps(level, order, rank_rows), movie, folder=tmp_path / "run", quiet=True)
    stages = (*run.plan.before, run.plan)
    assert len(stages) > 1
    assert run.metrics["chunks"] == sum(stage.n_chunks for stage in stages)
    assert run.metrics["items"] == MOVIE.size
    assert json.loads((run.folder / "metrics.json").read_text()) == run.metrics
    record = barrow.record(run.folder)
    assert list(record.steps.index) == [stage.name for stage in stages]
    for name in ("chunks", "written_bytes"):
        assert record.steps[name].sum() == record.metrics[name] == run.metrics[name]
