"""What is left out is known to the event, and the rest is never lost."""

import awkward as ak
import numpy as np
import pytest
import uproot

from barrow.errors import OutputError, SkippedWarning
from barrow.fields import collider
from barrow.fields.collider.synthetic import write_nanoaod


def numbers_of(events):
    return {"numbers": ak.to_numpy(events.event).tolist()}


def break_column(path, column):
    """Put noise into all baskets of a column."""
    with uproot.open(path) as file:
        branch = file["Events"][column]
        places = list(zip(branch.member("fBasketSeek"), branch.member("fBasketBytes"), strict=True))
    with open(path, "r+b") as file:
        for start, size in places[: branch.num_baskets]:
            file.seek(start + 20)
            file.write(bytes(size - 20))


@pytest.fixture
def unreadable(tmp_path):
    """Two files; in the second, of one cluster, a column cannot be read."""
    paths = [str(write_nanoaod(tmp_path / f"{n}.root", n, cluster=400)) for n in (600, 300)]
    break_column(paths[1], "event")
    return paths


def test_a_column_that_cannot_be_read_harms_only_those_who_touch_it(unreadable):
    run = collider.run(lambda events: int(ak.sum(ak.num(events.Muon))), unreadable)
    assert run.skipped == ()
    assert run.metrics["entries"] == 900


def test_a_column_that_cannot_be_read_is_named(unreadable):
    def both(events):
        return {"met": float(ak.sum(events.MET.pt)), **numbers_of(events)}

    with pytest.raises(OSError, match=r"300\.root: event of events 0 to 300 cannot be read"):
        collider.run(both, unreadable)
    with pytest.warns(SkippedWarning):
        run = collider.run(both, unreadable, on_error="skip")
    assert run.output["numbers"] == [*range(600)]
    assert [(skip.path, skip.start, skip.stop) for skip in run.skipped] == [(unreadable[1], 0, 300)]
    assert run.metrics["entries"] + run.metrics["entries_skipped"] == 900


def test_a_column_that_one_file_does_not_have_costs_that_file(tmp_path):
    whole = str(write_nanoaod(tmp_path / "whole.root", 300))
    poor = str(tmp_path / "poor.root")
    with uproot.recreate(poor) as file:
        tree = file.mktree("Events", {"event": "u8"})
        tree.extend({"event": np.arange(300, 340, dtype="u8")})

    def both(events):
        return {"met": float(ak.sum(events.MET.pt)), **numbers_of(events)}

    with pytest.warns(SkippedWarning, match="MET"):
        run = collider.run(both, [whole, poor], on_error="skip")
    assert run.output["numbers"] == [*range(300)]
    assert [(skip.path, skip.start, skip.stop) for skip in run.skipped] == [(poor, 0, 40)]


@pytest.mark.parametrize(("policy", "gaps"), [("skip", {270}), ("skip-file", {*range(300)})])
def test_what_is_skipped_and_what_is_done_make_up_the_whole(tmp_path, policy, gaps):
    paths = [str(write_nanoaod(tmp_path / f"{n}.root", n, cluster=100)) for n in (250, 300)]

    def fussy(events):
        if ak.any(events.event == 270):
            raise ValueError("not this one")
        return numbers_of(events)

    with pytest.warns(SkippedWarning):
        run = collider.run(fussy, paths, on_error=policy)
    assert run.output["numbers"] == [*range(250), *(n for n in range(300) if n not in gaps)]
    assert {n for skip in run.skipped for n in range(skip.start, skip.stop)} == gaps
    assert run.metrics["entries_skipped"] == len(gaps)


def test_two_cannot_write_to_the_same_place_at_once(slim, tmp_path):
    to = tmp_path / "out.pkl"
    said = []

    def meet(events):
        with pytest.raises(OutputError) as caught:
            collider.run(numbers_of, slim, to=to, cluster=False)
        said.append(str(caught.value))
        return len(events)

    assert collider.run(meet, slim, to=to, cluster=False, chunksize=5000).output == 5000
    assert said == [
        f"Another process is writing {to} right now. Wait for it, or choose another place."
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "out.pkl", "out.pkl.json"]
