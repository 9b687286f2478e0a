"""Choose one array of a Zarr group.

Knows the images of OME-Zarr (NGFF 0.4 and 0.5): levels of resolution, the finest
first, whose axes have names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barrow.errors import InputError
from barrow.sources.naming import list_names


@dataclass(frozen=True)
class Choice:
    """The array that is meant, and what its group says about it."""

    array: Any
    dims: tuple[str, ...] | None
    name: str | None
    """What it is called; None if the group's own name says more."""


def choose_array(found: Any, name: str | None) -> Choice:
    """Return the array itself, the level of an image, or the only array of a group.

    Parameters
    ----------
    found
        An open Zarr array or group.
    name
        The path of an array inside the group, or the level of an image.
    """
    import zarr

    if isinstance(found, zarr.Array):
        return Choice(found, None, name)
    image = find_image(found.attrs)
    if image is not None:
        return _choose_level(found, image, name)
    if name is not None:
        return _choose_member(found, name)
    arrays = {path: member for path, member in found.members() if isinstance(member, zarr.Array)}
    wanted = [path for path, array in arrays.items() if not _is_coordinate(path, array)]
    if len(wanted) == 1:
        return Choice(arrays[wanted[0]], None, wanted[0])
    raise InputError(
        f"The {_describe(found)} holds {_list_members(found)}. Choose one array with name=."
    )


def find_image(attributes: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the description of a multiscale image among a group's attributes.

    Examples
    --------
    >>> find_image({"ome": {"version": "0.5", "multiscales": [{"name": "slide"}]}})
    {'name': 'slide'}
    >>> find_image({"title": "no image"}) is None
    True
    """
    described = attributes.get("ome")
    holder = described if isinstance(described, Mapping) else attributes
    images = holder.get("multiscales") or attributes.get("multiscales")
    return images[0] if images else None


def _choose_level(group: Any, image: Mapping[str, Any], name: str | None) -> Choice:
    levels = [str(level["path"]) for level in image["datasets"]]
    axes = tuple(_name_axis(axis) for axis in image.get("axes", ()))
    if name is None:
        return Choice(group[levels[0]], axes or None, None)
    if name in levels:
        return Choice(group[name], axes or None, None)
    if name.isdecimal() and int(name) < len(levels):
        return Choice(group[levels[int(name)]], axes or None, None)
    if name in group:
        return choose_array(group[name], None)
    raise InputError(
        f"name={name!r} is no level of the image in the {_describe(group)}: "
        f"it has {list_names(levels)}, from fine to coarse."
    )


def _choose_member(group: Any, name: str) -> Choice:
    """Follow a path through groups; an image on the way takes the rest as its level."""
    head, _, rest = name.strip("/").partition("/")
    if head not in group:
        raise InputError(
            f"name={name!r} is not in the {_describe(group)}, which holds {_list_members(group)}."
        )
    choice = choose_array(group[head], rest or None)
    return choice if choice.name else Choice(choice.array, choice.dims, head)


def _name_axis(axis: Any) -> str:
    # Before NGFF 0.4 an axis was just its name.
    return str(axis["name"] if isinstance(axis, Mapping) else axis)


def _is_coordinate(path: str, array: Any) -> bool:
    """Return whether xarray stored the array as the coordinate of a dimension."""
    named: Sequence[str] = (
        getattr(array.metadata, "dimension_names", None)
        or array.attrs.get("_ARRAY_DIMENSIONS")
        or ()
    )
    return list(named) == [path]


def _list_members(group: Any) -> str:
    return list_names(sorted(group.keys())) or "nothing"


def _describe(group: Any) -> str:
    return f"Zarr group {str(group.store_path)!r}"
