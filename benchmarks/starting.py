"""How long does it take until a local cluster is ready, and until it is gone?

A fresh Python opens a cluster of two workers, does one task on each, closes it, and does
the same again: the first time includes loading Dask. Beside it, in turns, Dask's own
LocalCluster with processes, which has no certificates. CPU seconds are those of the client and of
both workers: on a busy machine they tell more than the wall.
"""

import argparse
import json
import statistics
import subprocess
import sys

from measure import describe_machine, write_json

LIMIT_SECONDS = 2.0
OPEN = {
    "barrow": """
        import barrow
        return barrow.cluster("local", workers=2, threads=1, memory="500MB")
    """,
    "LocalCluster": """
        from distributed import LocalCluster
        return LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="500MB",
            dashboard_address=None, host="127.0.0.1")
    """,
}
PROGRAM = """
import json, os, resource, time

def open_cluster():
{body}

def cpu(_):
    return time.process_time()

if __name__ == "__main__":
    laps = {{}}
    for turn in ("first", "second"):
        began, spent = time.perf_counter(), time.process_time()
        cluster = open_cluster()
        if not hasattr(cluster, "client"):
            from distributed import Client
            client = Client(cluster)
            client.wait_for_workers(2)
        else:
            client = cluster.client
        laps[f"{{turn}} ready"] = time.perf_counter() - began
        client.gather(client.map(cpu, range(8), pure=False))
        workers = sum(client.run(time.process_time).values())
        laps[f"{{turn}} CPU"] = time.process_time() - spent + workers
        began = time.perf_counter()
        if client is not getattr(cluster, "client", None):
            client.close()
        cluster.close()
        laps[f"{{turn}} gone"] = time.perf_counter() - began
    print(json.dumps(laps))
"""


def start(kind: str) -> dict[str, float]:
    """Return the laps of one fresh Python."""
    body = "\n".join(f"    {line.strip()}" for line in OPEN[kind].strip().splitlines())
    code = PROGRAM.format(body=body)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    laps: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return laps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in OPEN}
    for _ in range(repeats):
        for kind in OPEN:
            found[kind].append(start(kind))
    names = list(found["barrow"][0])
    print(f"{'':14}" + "".join(f"{name:>16}" for name in names) + "   (least / median, s)")
    for kind, laps in found.items():
        cells = []
        for name in names:
            values = [lap[name] for lap in laps]
            cells.append(f"{min(values):.2f} /{statistics.median(values):5.2f}")
        print(f"{kind:14}" + "".join(f"{cell:>16}" for cell in cells))
    quickest = min(lap["first ready"] for lap in found["barrow"])
    words = "below" if quickest < LIMIT_SECONDS else "NOT below"
    print(f"Ready in {quickest:.2f} s at the quietest moment: {words} {LIMIT_SECONDS:.0f} s.")
    write_json("starting", {"question": __doc__, **describe_machine(), "laps": found})


if __name__ == "__main__":
    main()
