"""Where tasks may run that ask for more than a thread and memory: a GPU, a licence, more threads.

Workers say what they offer. This machine offers one of each, whatever it is called, and as
many threads as it has cores. Numbers in, numbers out.
"""

from collections.abc import Mapping
from dataclasses import replace

from barrow.errors import InputError
from barrow.model.applied import Apply
from barrow.model.site import THREADS, Offer, Site
from barrow.model.source import Source

Asked = Mapping[str, float]

HERE = 1.0
"""What this machine offers of anything but threads."""


def asked_by(target: Source) -> dict[str, float]:
    """Return what a task of a chain of steps asks for.

    Steps of one task run one after the other, so it asks for the most that any of them does.
    """
    if not isinstance(target.read, Apply):
        return {}
    asked = dict(target.read.step.resources)
    for below in target.read.inputs:
        for name, amount in asked_by(below).items():
            asked[name] = max(amount, asked.get(name, 0.0))
    return asked


def place(site: Site, target: Source) -> Site:
    """Return the site with the workers that can take the tasks of a target, and no others.

    A worker counts with as many threads as it can give to such tasks at once. Refuses
    steps that nobody at the site can do.
    """
    asked = asked_by(target)
    if not asked:
        return site
    if site.kind == "process":
        if not count_here(asked, site.machine.cores):
            raise InputError(_explain_machine(target, site))
        return site
    crew = {}
    for address, offer in lend(site, asked).items():
        if most := min(int(offer.amount(name) / n) for name, n in asked.items()):
            crew[address] = replace(offer, threads=min(offer.threads, most))
    if not crew:
        raise InputError(
            _explain_machine(target, site) if site.is_own else _explain_workers(target, site)
        )
    threads = min(offer.threads for offer in crew.values())
    return replace(site, crew=crew, workers=len(crew), threads=threads)


def count_here(asked: Asked, cores: int) -> int | None:
    """Return how many such tasks a machine runs at once; None for as many as one likes.

    Examples
    --------
    >>> count_here({}, 8), count_here({"GPU": 1}, 8), count_here({"GPU": 0.5}, 8)
    (None, 1, 2)
    >>> count_here({"threads": 4}, 8), count_here({"threads": 4, "GPU": 1}, 8)
    (2, 1)
    """
    return min((int(_have(name, cores) / n) for name, n in asked.items()), default=None)


def _have(name: str, cores: int) -> float:
    return cores if name == THREADS else HERE


def lend(site: Site, asked: Asked) -> dict[str, Offer]:
    """Return what each worker offers; on this machine the first has one of what none has."""
    crew = dict(site.crew)
    missing = {n: HERE for n in asked if not any(o.amount(n) for o in crew.values())}
    if site.is_own and crew and missing:
        first = next(iter(crew))
        resources = {**crew[first].resources, **missing}
        crew[first] = replace(crew[first], resources=resources)
    return crew


def explain_placement(target: Source, site: Site, at_once: int) -> str:
    """Return why no more tasks run at once."""
    step, asked = _describe(target)
    who = "the workers offer" if site.kind == "dask" else "this machine offers"
    total = {
        name: sum(offer.amount(name) for offer in site.crew.values())
        or _have(name, site.machine.cores)
        for name in asked_by(target)
    }
    many = "one task at a time" if at_once == 1 else f"{at_once} tasks at once"
    return f"{many}: {step} asks for {asked} and {who} {_list(total)}"


def _explain_workers(target: Source, site: Site) -> str:
    step, asked = _describe(target)
    return (
        f"{step} asks for {asked}, but no worker of the cluster at {site.address} offers that. "
        "Start workers that do, as in dask worker --resources 'GPU=1', or ask for less."
    )


def _explain_machine(target: Source, site: Site) -> str:
    step, asked = _describe(target)
    wanted = asked_by(target).get(THREADS, 0)
    if wanted > max((offer.threads for offer in site.offers), default=site.machine.cores):
        who = "a worker here has" if site.offers else "this machine has"
        most = max((offer.threads for offer in site.offers), default=site.machine.cores)
        return (
            f"{step} asks for {asked}, but {who} only {most}. Ask for less, or start workers with "
            f"more, as in barrow.cluster('local', workers=1, threads={site.machine.cores})."
        )
    return (
        f"{step} asks for {asked}, but this machine offers 1 of each, if nobody says more. Ask for "
        "less, or say what there is, as in barrow.cluster('local', resources={'GPU': 2})."
    )


def _describe(target: Source) -> tuple[str, str]:
    """Return the first step that asks for something, and what all of them ask for."""
    step, below = "", target
    while isinstance(below.read, Apply):
        if below.read.step.resources:
            step = f"'{below.read.step.name}'"
        below = below.read.inputs[0]
    return step, _list(asked_by(target))


def _list(amounts: Asked) -> str:
    return " and ".join(f"{amount:g} {name}" for name, amount in sorted(amounts.items()))
