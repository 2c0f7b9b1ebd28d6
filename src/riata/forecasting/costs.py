"""What a fit takes: seconds and memory, from its plan and the shape of the rows.

The constants were measured by `python benchmarks/costs.py`, which fits every solver to seven tables
of sparse rows, 1,000 to 60,000 of them, in a process of its own on one core, and fits the parts
below to the seconds. They are for orders of magnitude: another machine is easily twice as quick,
and reading a file comes on top.
"""

from __future__ import annotations

from dataclasses import dataclass

from riata.solvers import Plan

#: For each solver, seconds: once, for an entry, for a step, for an entry in a step, for a column in
#: a step, and for an entry times the number of columns.
SECONDS = {
    "greedy": (1.3e-01, 1.8e-07, 6.9e-03, 1.4e-08, 0.0, 0.0),
    "refitted-frank-wolfe": (2.9e-01, 7.1e-07, 1.1e-02, 4.3e-08, 1.0e-06, 0.0),
    "sufficient-statistics": (0.0, 1.2e-06, 5.9e-02, 0.0, 2.3e-03, 0.0),
    "frank-wolfe": (1.8e-01, 0.0, 1.7e-02, 1.4e-08, 4.0e-05, 0.0),
    "gaussian-frank-wolfe": (3.4e-01, 8.1e-08, 1.3e-02, 2.1e-09, 0.0, 0.0),
    "noisy-gradient": (2.0e-01, 0.0, 3.0e-03, 2.0e-08, 2.9e-06, 0.0),
    "scaled-gradient": (0.0, 0.0, 9.3e-03, 9.5e-08, 0.0, 2.1e-10),
    "class-sums": (1.1e-01, 7.9e-08, 7.5e-02, 0.0, 0.0, 0.0),
    "objective-perturbation": (0.0, 1.7e-06, 1.7, 0.0, 6.8e-05, 0.0),
    "hard-thresholding": (1.6e-01, 3.9e-08, 8.7e-02, 0.0, 0.0, 0.0),
    "peeling": (9.1e-02, 9.2e-08, 5.9e-02, 0.0, 1.1e-05, 0.0),
    "projected": (9.0e-01, 4.0e-07, 5.0e-03, 2.0e-08, 1.0e-05, 0.0),
}

#: Solvers that are not measured are taken for this one.
LIKE = "noisy-gradient"

#: Bytes for an entry of the rows: as they are stored, and with what an engine makes of them.
STORED, BYTES = 12, 70

#: Bytes that Python and its libraries take before a row is read.
BEGIN = 2.2e8


@dataclass(frozen=True)
class Cost:
    """What a fit takes on one core of a usual machine, to an order of magnitude.

    Attributes
    ----------
    seconds : float
        Without reading the file.
    bytes : float
        The most memory, if the rows are in memory.
    """

    seconds: float
    bytes: float

    def __str__(self) -> str:
        return f"about {duration(self.seconds)} and {size(self.bytes)}"


def cost_of(plan: Plan, entries: float | None = None) -> Cost:
    """Estimate time and memory of a fit.

    Parameters
    ----------
    plan : Plan
    entries : float, optional
        How many entries of the rows are not 0; by default all.
    """
    rows, columns = plan.problem.n_rows, plan.problem.n_features
    entries = float(rows * columns) if entries is None else float(entries)
    begin, entry, step, of_both, of_columns, squared = SECONDS.get(
        plan.solver.split()[0].rstrip(","), SECONDS[LIKE]
    )
    steps = plan.steps * plan.fits
    seconds = begin + entries * (entry + columns * squared)
    seconds += steps * (step + entries * of_both + columns * of_columns)
    return Cost(seconds, BEGIN + entries * (STORED + BYTES) + 16.0 * rows)


def duration(seconds: float) -> str:
    """A time in words, to one or two digits."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "1 s"


def size(count: float) -> str:
    """Bytes in words."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
