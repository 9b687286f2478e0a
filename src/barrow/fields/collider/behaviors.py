"""What records of events can do: four-vectors, distances, and the names coffea gives them."""

from functools import cache
from typing import Any

import awkward as ak
import numpy as np
import vector
from vector.backends import awkward as momenta

CARTESIAN = ("x", "y", "z", "t")


class EventsArray(ak.Array):  # type: ignore[misc]
    """Events, with what is known about where they come from."""

    @property
    def metadata(self) -> Any:
        """Dataset, file, tree, first and last event, and what the fileset says."""
        return self.attrs.get("metadata", {})


class _Distances:
    """Distances under the names that coffea uses."""

    def delta_r(self: Any, other: Any) -> Any:
        """Return the distance in eta and phi."""
        return self.deltaR(other)

    def delta_phi(self: Any, other: Any) -> Any:
        """Return the difference in phi, from -pi to pi."""
        return self.deltaphi(other)

    def metric_table(
        self: Any, other: Any, axis: int = 1, return_combinations: bool = False
    ) -> Any:
        """Return the distance of each item to each of others in the same event."""
        mine, theirs = ak.unzip(ak.cartesian([self, other], axis=axis, nested=True))
        table = mine.deltaR(theirs)
        return (table, (mine, theirs)) if return_combinations else table

    def nearest(self: Any, other: Any, threshold: float | None = None) -> Any:
        """Return, for each item, the one of others that is nearest; None where there is none."""
        table, (_, theirs) = self.metric_table(other, return_combinations=True)
        place = ak.argmin(table, axis=2, keepdims=True)
        found = ak.firsts(theirs[place], axis=2)
        if threshold is None:
            return found
        return ak.mask(found, ak.firsts(table[place], axis=2) < threshold)


class Momentum4DArray(_Distances, momenta.MomentumArray4D):
    """Particles with energy or mass."""

    def sum(self: Any, axis: int = -1) -> Any:
        """Return the sum of the particles of each event, with its charge if they have one."""
        names = (*CARTESIAN, *(("charge",) if "charge" in self.fields else ()))
        return _make_sum({name: ak.sum(getattr(self, name), axis=axis) for name in names}, self)


class Momentum3DArray(_Distances, momenta.MomentumArray3D):
    """Directions and momenta."""


class Momentum2DArray(momenta.MomentumArray2D):
    """Momenta across the beam."""

    def delta_phi(self: Any, other: Any) -> Any:
        """Return the difference in phi, from -pi to pi."""
        return self.deltaphi(other)


def _add(one: Any, other: Any) -> Any:
    """Return the sums of pairs of particles; charges are added too, as coffea does it."""
    if "charge" not in one.fields or "charge" not in other.fields:
        return one.add(other)
    names = (*CARTESIAN, "charge")
    return _make_sum({name: getattr(one, name) + getattr(other, name) for name in names}, one)


def _make_sum(components: dict[str, Any], like: Any) -> Any:
    return ak.zip(components, with_name="Momentum4D", behavior=like.behavior)


@cache
def make_behavior() -> dict[Any, Any]:
    """Return the behaviors of events and all that is in them."""
    found = dict(vector.backends.awkward.behavior)
    found["*", "Events"] = EventsArray
    found["*", "Momentum4D"] = Momentum4DArray
    found[np.add, "Momentum4D", "Momentum4D"] = _add
    found["*", "Momentum3D"] = Momentum3DArray
    found["*", "Momentum2D"] = Momentum2DArray
    return found
