import awkward as ak
import numpy as np
import pytest

from barrow.errors import InputError
from barrow.fields.collider.columns import Column, group_columns
from barrow.fields.collider.events import make_events, open_events
from barrow.fields.collider.opening import open_file
from barrow.fields.collider.synthetic import make_events as draw_events
from barrow.fields.collider.synthetic import write_nanoaod

FORMATS = ["ttree", "rntuple", "parquet"]


@pytest.fixture(params=FORMATS)
def any_format(request, tmp_path):
    suffix = ".parquet" if request.param == "parquet" else ".root"
    return write_nanoaod(tmp_path / f"few{suffix}", 700, cluster=300, format=request.param)


def test_all_formats_give_back_what_was_written(any_format):
    drawn = draw_events(700)
    events = open_events(any_format)
    assert ak.array_equal(events.Muon.pt, drawn["Muon_pt"])
    assert np.array_equal(ak.to_numpy(events.event), drawn["event"])
    assert ak.all(ak.num(events.Jet) == drawn["nJet"])


def test_a_part_of_a_file_is_what_lies_there_in_the_whole(any_format):
    whole, part = open_events(any_format), open_events(any_format, start=250, stop=610)
    assert ak.array_equal(part.Muon.eta, whole.Muon.eta[250:610])
    assert ak.array_equal(part.MET.pt, whole.MET.pt[250:610])


def test_clusters_are_found_in_all_formats(any_format):
    assert open_file(str(any_format), "Events").edges.tolist() == [0, 300, 600, 700]


def test_only_columns_that_are_touched_are_read(slim):
    file = open_file(slim, "Events")
    events, loader = make_events(file, 0, 1000)
    assert not file.effort.value_bytes
    assert ak.sum(events.Muon.pt[events.MET.pt > 50]) > 0
    assert loader.touched == {"nMuon", "Muon_pt", "MET_pt"}


def test_columns_known_to_be_needed_are_read_together(slim, monkeypatch):
    file = open_file(slim, "Events")
    asked = []
    monkeypatch.setattr(
        file, "read", lambda names, *a: asked.append(list(names)) or read(names, *a)
    )
    read = type(file).read.__get__(file)
    events, _ = make_events(file, 0, 100, together=["MET_pt", "nMuon", "gone"])
    ak.num(events.Muon)
    ak.sum(events.MET.pt)
    assert asked == [["MET_pt", "nMuon"]]


def test_muons_are_vectors(slim):
    events = open_events(slim)
    pairs = events.Muon[ak.num(events.Muon) == 2]
    one, other = pairs[:, 0], pairs[:, 1]
    mass = np.sqrt(
        2 * one.pt * other.pt * (np.cosh(one.eta - other.eta) - np.cos(one.phi - other.phi))
    )
    assert np.allclose((one + other).mass[mass > 10], mass[mass > 10], rtol=1e-2)
    assert ak.all(one.delta_r(other) >= 0)
    assert ak.array_equal(one.delta_r(other), one.deltaR(other))
    assert ak.all(abs(one.delta_phi(other)) <= np.pi + 1e-6)


def test_charges_of_muons_are_added_with_them(slim):
    muons = open_events(slim).Muon
    pairs = muons[ak.num(muons) == 2]
    total = pairs[:, 0] + pairs[:, 1]
    assert ak.array_equal(total.charge, pairs.charge[:, 0] + pairs.charge[:, 1])
    assert ak.all(ak.isclose(pairs.sum().mass, total.mass, rtol=1e-3, atol=1e-1))
    assert ak.array_equal(pairs.sum().charge, ak.sum(pairs.charge, axis=1))


def test_the_nearest_jet_is_the_one_with_the_least_distance(slim):
    events = open_events(slim, stop=200)
    near = events.Muon.nearest(events.Jet)
    least = ak.min(events.Muon.metric_table(events.Jet), axis=2)
    assert ak.all(ak.isclose(events.Muon.delta_r(near), least))
    far = events.Muon.nearest(events.Jet, threshold=0.5)
    assert ak.all(events.Muon.delta_r(far) < 0.5)


def test_a_flat_schema_leaves_columns_as_they_are(slim):
    events = open_events(slim, schema="flat")
    assert "Muon_pt" in events.fields
    assert ak.all(ak.num(events.Muon_pt) == events.nMuon)


def test_a_plain_column_keeps_its_name_beside_others_with_the_same_beginning():
    columns = {"HLT": Column("bool"), "HLT_Mu": Column("bool"), "nothing": Column("bool")}
    assert group_columns(columns, "nanoaod") == {
        "HLT": {"": "HLT", "Mu": "HLT_Mu"},
        "nothing": {"": "nothing"},
    }


def test_a_tree_that_is_not_there_is_named_with_those_that_are(slim):
    with pytest.raises(InputError, match=r"no tree 'Muons'. It holds 'Events'"):
        open_events(slim, "Muons")


def test_events_do_not_depend_on_how_they_are_clustered(tmp_path):
    paths = [write_nanoaod(tmp_path / f"{n}.root", 2500, cluster=n) for n in (400, 2500)]
    few, many = (open_events(path).Jet.pt for path in paths)
    assert ak.array_equal(few, many)


def test_a_file_without_events_has_columns(tmp_path):
    events = open_events(write_nanoaod(tmp_path / "none.root", 0))
    assert len(events.Muon.pt) == 0
