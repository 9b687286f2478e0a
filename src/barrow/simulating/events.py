"""The events of a run, one after the other: who begins, who waits, who ends.

Slots take tasks in order. On the way to its slot a task passes the scheduler, which does one
thing after the other. In its slot it waits out the gap, then for the disk, then it computes. Disk
and cores are shared: everybody there is slowed down alike, so what is left of each is kept in
the time of that resource, which runs slower the more there are. Then only the first end has to
be looked for, and a million tasks cost a million steps on a heap.

Written with indices and loops, so that Numba can compile it as it is; lists will do as well.
"""

from typing import Any

CLOCK, CORES, DISK = 0, 1, 2
"""The heaps: what ends by the clock, by the time of the cores, by that of the disk."""
FAR = 1e300


def push(keys: Any, ids: Any, sizes: Any, heap: int, key: float, number: int) -> None:
    """Put something on a heap."""
    base = heap * (len(keys) // 3)
    place = sizes[heap]
    sizes[heap] += 1
    while place > 0:
        above = (place - 1) // 2
        if keys[base + above] <= key:
            break
        keys[base + place] = keys[base + above]
        ids[base + place] = ids[base + above]
        place = above
    keys[base + place] = key
    ids[base + place] = number


def pop(keys: Any, ids: Any, sizes: Any, heap: int) -> Any:
    """Take the first from a heap, and return its number."""
    base = heap * (len(keys) // 3)
    first = ids[base]
    sizes[heap] -= 1
    size = sizes[heap]
    key, number = keys[base + size], ids[base + size]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and keys[base + below + 1] < keys[base + below]:
            below += 1
        if keys[base + below] >= key:
            break
        keys[base + place] = keys[base + below]
        ids[base + place] = ids[base + below]
        place = below
    keys[base + place] = key
    ids[base + place] = number
    return first


def pace_cores(users: int, cores: float, crowding: float, turning: float) -> float:
    """Return how fast each of some tasks goes on the cores that they share."""
    if users <= 0:
        return 1.0
    pace = 1.0
    if crowding > 1.0 and cores > 1.0:
        crowd = min(1.0, (users - 1.0) / (cores - 1.0))
        pace = 1.0 / (1.0 + (crowding - 1.0) * crowd)
    # What idle workers use is a part of a core: nobody takes turns for that.
    if users >= cores + 1.0:
        pace *= 1.0 - turning
    return pace * min(1.0, cores / users)


def play(
    kinds: Any,
    waits: Any,
    rates: Any,
    cpus: Any,
    first_child: Any,
    next_child: Any,
    delays: Any,
    gap: float,
    slots: int,
    scheduler_seconds: float,
    is_here: bool,
    cores: float,
    crowding: float,
    turning: float,
    disk: float,
    keys: Any,
    ids: Any,
    sizes: Any,
    queue: Any,
) -> float:
    """Return when the last task ends; :func:`barrow.simulating.simulate.simulate` calls it.

    Parameters
    ----------
    kinds
        Of each task: where its numbers stand in ``waits`` (seconds), ``rates`` (bytes per
        second of the disk while it waits) and ``cpus`` (seconds).
    first_child, next_child
        Lists of the tasks that can begin when one has ended; -1 ends a list. The last list is
        of those that wait for nobody. Empty if all of them can begin at once.
    delays
        How long after that each can begin.
    gap
        Seconds in a slot before each task.
    slots
        Tasks at once; also, how many may wait for a slot behind the scheduler.
    is_here
        Whether the scheduler uses one of the cores.
    keys, ids, sizes
        Three heaps, one behind the other. On that of the clock stands when slots come, under
        number 2 * count + 1.
    queue
        Room for the numbers of all tasks, in the order in which they can begin.
    """
    count, room = len(kinds), len(keys) // 3
    scheduling, coming = 2 * count, 2 * count + 1
    # What is nobody's bottleneck needs no time of its own: then a task ends by the clock.
    is_shared = cores < FAR or disk < FAR
    ready = passed = begun = done = free = 0  # tasks that can begin, are past the scheduler, ...
    now = core_time = disk_time = disk_rate = 0.0
    core_pace = disk_pace = 1.0
    is_passing = False
    opening = count  # whose children are to be released next; -1 for nobody
    if len(first_child) == 0:
        for task in range(count):
            queue[task] = task
        ready, opening = count, -1
    while done < count:
        if opening >= 0:
            child = first_child[opening]
            while child >= 0:
                if delays[child] > 0.0:
                    push(keys, ids, sizes, CLOCK, now + delays[child], count + child)
                else:
                    queue[ready] = child
                    ready += 1
                child = next_child[child]
            opening = -1
        if not is_passing and passed < ready and passed - begun < slots + free:
            if scheduler_seconds <= 0.0:
                passed += 1
            elif is_here and cores < FAR:
                is_passing = True
                push(keys, ids, sizes, CORES, core_time + scheduler_seconds, scheduling)
            else:
                is_passing = True
                push(keys, ids, sizes, CLOCK, now + scheduler_seconds, scheduling)
        if free > 0 and begun < passed:
            task = queue[begun]
            begun += 1
            free -= 1
            kind = kinds[task]
            rest = 0.0 if is_shared else waits[kind] + cpus[kind]
            push(keys, ids, sizes, CLOCK, now + gap + rest, task)
            continue
        if sizes[CORES] > 0:
            core_pace = pace_cores(sizes[CORES], cores, crowding, turning)
        disk_pace = min(1.0, disk / disk_rate) if disk_rate > 0.0 else 1.0
        # What happens next, and where?
        then, where = FAR, -1
        if sizes[CLOCK] > 0:
            then, where = keys[CLOCK * room], CLOCK
        if sizes[CORES] > 0:
            end = now + (keys[CORES * room] - core_time) / core_pace
            if end < then:
                then, where = end, CORES
        if sizes[DISK] > 0:
            end = now + (keys[DISK * room] - disk_time) / disk_pace
            if end < then:
                then, where = end, DISK
        if where < 0:
            return FAR  # they wait for what never comes
        then = max(now, then)
        core_time += (then - now) * core_pace
        disk_time += (then - now) * disk_pace
        now = then
        task = pop(keys, ids, sizes, where)
        if task == coming:
            free += 1
        elif task == scheduling:
            is_passing = False
            passed += 1
        elif task >= count:
            queue[ready] = task - count
            ready += 1
        elif where == CORES or not is_shared:
            done += 1
            free += 1
            if len(first_child) > 0:
                opening = task
        else:
            kind = kinds[task]
            if where == CLOCK and waits[kind] > 0.0:
                disk_rate += rates[kind]
                push(keys, ids, sizes, DISK, disk_time + waits[kind], task)
                continue
            if where == DISK:
                disk_rate = disk_rate - rates[kind] if sizes[DISK] > 0 else 0.0
            push(keys, ids, sizes, CORES, core_time + cpus[kind], task)
    return now
