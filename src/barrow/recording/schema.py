"""What the record of a run holds, table by table.

One SQLite file for every run of barrow's own and for every watched program. Times are
seconds since the epoch, lengths of time are seconds, sizes are bytes. A column that was
not measured is null. Whoever reads it checks ``run.schema`` first.
"""

VERSION = 7

SCHEMA = """
create table if not exists run (      -- facts: texts as they are, all else as JSON
    name text primary key,            -- schema, kind (run or watch), began, ended, status, plan,
    value text                        -- versions, machine, settings, command,
                                      -- stages (of a pipeline: name, steps, began, ended), ...
) without rowid;
create table if not exists task (     -- the chunks of a run of barrow's own, when they are done
    chunk integer primary key,        -- number in the plan's grid
    started real not null,
    read_seconds real not null,
    compute_seconds real not null,
    write_seconds real not null,
    cpu_seconds real not null,
    read_bytes integer not null,
    written_bytes integer not null,
    cells integer not null,           -- chunks computed in the same call: times and bytes above
                                      -- are an equal share
    checksum integer,                 -- CRC-32C of its values; null where the result is not stored
    peak_bytes integer not null,      -- most the process held during the call, above what it held
                                      -- before its first task; of all its threads together
    worker text not null,             -- process/thread
    resident_bytes integer not null   -- of the process, just after
);
create table if not exists stage_task (-- the same of the stages before, in a pipeline
    stage integer not null,           -- its place in the fact "stages"
    step text not null,               -- name of the work
    chunk integer not null,           -- number in the grid of that stage; from here on as in task
    started real not null,
    read_seconds real not null,
    compute_seconds real not null,
    write_seconds real not null,
    cpu_seconds real not null,
    read_bytes integer not null,
    written_bytes integer not null,
    cells integer not null,
    checksum integer,
    peak_bytes integer not null,
    worker text not null,
    resident_bytes integer not null
);
create table if not exists skipped (  -- chunks of a run of barrow's own that have no answer
    step text not null,               -- name of the work: earlier stages have chunks of their own
    chunk integer not null,           -- number in the grid of that work
    ranges text not null,             -- JSON: start and stop for each dimension of its result
    reason text not null,
    attempts integer not null,
    primary key (step, chunk)
) without rowid;
create table if not exists event (    -- what happened to the run as a whole
    time real not null,
    kind text not null,
    message text not null,            -- a sentence for people
    details text not null             -- JSON: its numbers
);
create table if not exists dask_task (-- tasks that Dask ran, one row for each attempt that ended
    id integer primary key,
    step text not null,               -- the key's prefix, or the function's name
    key text not null,
    span integer,                     -- the innermost span in which it was made
    worker text,                      -- process.name
    thread integer,
    ready real,                       -- when its inputs were there and it could have begun
    waited_for text,                  -- key of the task whose end made it ready, if one did
    inputs integer,                   -- results of other tasks that it takes
    started real not null,            -- when a worker began with it, transfers included
    ended real not null,
    compute_seconds real not null,
    send_seconds real not null,       -- waiting for inputs from other workers
    spill_seconds real not null,      -- reading inputs back from disk
    cpu_seconds real,
    received_bytes integer,           -- from other workers
    result_bytes integer,
    peak_bytes integer,               -- most the process held above what it held before, if alone
    attempt integer not null,         -- 1 for the first
    outcome text not null,            -- done, failed, lost (with its worker), cancelled
    error text
);
create table if not exists process (  -- every process that took part; one that restarts is new
    name text primary key,            -- unique in the record, for example host/pid
    kind text not null,               -- client, scheduler, worker, nanny, other
    host text not null,
    pid integer not null,
    address text,                     -- as Dask knows it
    label text,                       -- Dask's name for a worker
    threads integer,
    limit_bytes integer,
    joined real not null,
    left real,                        -- null while it lives, and if nobody saw it go
    reason text                       -- why it left: closed, killed by signal 9, memory, ...
) without rowid;
create table if not exists sample (   -- processes over time; counters grow from the first sample on
    time real not null,
    process text not null,            -- process.name
    rss_bytes integer not null,
    managed_bytes integer,            -- results that Dask holds there
    spilled_bytes integer,
    cpu_seconds real,
    disk_read_bytes integer,
    disk_written_bytes integer,
    net_received_bytes integer,
    net_sent_bytes integer
);
create table if not exists span (     -- named parts of a program
    id integer primary key,
    parent integer,
    name text not null,
    started real not null,
    ended real                        -- null if it did not end
);
create table if not exists log (      -- lines that matter: warnings and errors
    time real not null,
    process text,
    level text not null,
    logger text not null,
    message text not null
);
"""
TABLES = (
    "run",
    "task",
    "stage_task",
    "skipped",
    "event",
    "dask_task",
    "process",
    "sample",
    "span",
    "log",
)


def _list_columns() -> dict[str, tuple[str, ...]]:
    """Return the columns of each table, from the text above."""
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in SCHEMA.splitlines():
        words = line.split("--")[0].split()
        if line.startswith("create table"):
            name = line.split("exists ")[1].split()[0]
            found[name] = ()
        elif line.startswith("    ") and words and words[0] != "primary":
            found[name] += (words[0],)
    return found


COLUMNS = _list_columns()
"""Columns of each table, in order."""
