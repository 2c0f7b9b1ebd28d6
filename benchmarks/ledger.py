"""What a charge costs with 1, 100, 1,000 and 10,000 charges before it.

Every charge has another event (a selection with noise of its own beside Gaussian noise), so nothing
can be grouped. Wall time contains what the disk takes to make a charge durable, four syncs for the
head and as many for the database. The figures are medians over charges that are made at that
length; "open" is a new process's way to the ledger, and "charge_of" looks for the first run. The
memory is the peak that Python allocates in one charge.

    python benchmarks/ledger.py [--charges N] [--folder PATH]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.progress import track

from riata import Budget, Ledger
from riata.privacy.events import BoundedRange, Gaussian, compose

from results import keep, show

MARKS = (1, 100, 1_000, 10_000)
REPEATS = 15


def charge(ledger: Ledger, number: int) -> None:
    event = compose((BoundedRange(1e-6 * (number + 1)), 40), (Gaussian(1e6 + number), 2))
    summary = {"run": f"{number:064x}", "request": "0" * 64, "estimator": "PrivateLasso"}
    ledger.charge(event, adjacency="replace-one", summary=summary)


def times(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median processor and wall time in milliseconds."""
    cpu, wall = [], []
    for _ in range(repeats):
        before = time.process_time(), time.perf_counter()
        work()
        cpu.append(time.process_time() - before[0])
        wall.append(time.perf_counter() - before[1])
    return 1e3 * statistics.median(cpu), 1e3 * statistics.median(wall)


def measured(ledger: Ledger, path: Path) -> dict[str, Any]:
    """The costs at the present length, which a few charges more do not change."""
    number = len(ledger.charges)
    numbers = iter(range(number, number + REPEATS + 1))
    tracemalloc.start()
    charge(ledger, next(numbers))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    cpu, wall = times(lambda: charge(ledger, next(numbers)), REPEATS)
    return {
        "charges before": number,
        "charge, CPU ms": cpu,
        "charge, wall ms": wall,
        "charge, peak MB": peak / 1e6,
        "open, CPU ms": times(lambda: Ledger.open(path), 5)[0],
        "charge_of, CPU ms": times(lambda: ledger.charge_of(f"{0:064x}"), 5)[0],
        "spent, CPU ms": times(lambda: ledger.spent, 5)[0],
        "verify, CPU ms": times(ledger.verify, 1)[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--charges", type=int, default=MARKS[-1])
    parser.add_argument("--folder", type=Path, default=None, help="on which disk")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path, rows = Path(folder, "study.db"), []
        ledger = Ledger.create(path, dataset="claims", ceiling=Budget(1e3, 1e-6))
        charge(ledger, 0)
        made = 1
        for mark in (mark for mark in MARKS if mark <= given.charges):
            for number in track(range(made, mark), f"to {mark:,}", transient=True):
                charge(ledger, number)
            rows.append(measured(ledger, path))
            made = mark + REPEATS + 1
    first = rows[0]
    for row in rows:
        row["CPU ratio"] = row["charge, CPU ms"] / first["charge, CPU ms"]
        row["wall ratio"] = row["charge, wall ms"] / first["charge, wall ms"]
    show("A charge of a ledger in a file", rows)
    keep("ledger", {"rows": rows})


if __name__ == "__main__":
    main()
