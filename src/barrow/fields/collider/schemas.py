"""Names of schemas, as coffea has them: they say how columns become events."""

from typing import Any

from barrow.fields.collider.columns import Schema


class NanoAODSchema:
    """Stands for events in collections: ``events.Muon.pt``."""


class BaseSchema:
    """Stands for columns as they are: ``events.Muon_pt``."""


def find_schema(given: Any) -> Schema | type:
    """Return what :func:`barrow.collider.run` calls a schema; those of coffea are left as they are.

    Examples
    --------
    >>> find_schema(BaseSchema), find_schema(None)
    ('flat', 'nanoaod')
    """
    found: Schema | type
    if given is None or given is NanoAODSchema:
        found = "nanoaod"
    elif given is BaseSchema:
        found = "flat"
    else:
        found = given
    return found
