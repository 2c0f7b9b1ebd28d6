"""What a fit takes: seconds and memory, from its plan and the shape of the rows.

The constants were measured by `python benchmarks/costs.py`, which fits every solver to seven tables
of sparse rows, 1,000 to 60,000 of them, each in a process of its own, and fits the parts below to
the seconds of a processor. The parts miss these measurements by a factor of at most 2. Those of
objective perturbation, projections and posterior samples are of an earlier version, in which the
others took longer too. They are for orders of magnitude: another machine may well be twice as
quick, a solver that decides while it runs may end much earlier, and reading a file comes on top.
"""

from __future__ import annotations

from dataclasses import dataclass

from riata.solvers import Plan

#: For each solver, seconds: once, for an entry, for an entry times the number of columns, for each
#: step, and in each step for an entry, for a row and for a column.
SECONDS = {
    "greedy": (3.4e-02, 5.4e-08, 0.0, 0.0, 9.7e-10, 5.7e-08, 0.0),
    "refitted-frank-wolfe": (2.0e-02, 9.6e-08, 0.0, 2.7e-03, 1.6e-09, 9.6e-09, 9.3e-07),
    "sufficient-statistics": (7.6e-03, 7.8e-08, 0.0, 0.0, 0.0, 2.9e-06, 6.1e-04),
    "frank-wolfe": (3.5e-02, 3.8e-09, 0.0, 2.5e-03, 1.7e-09, 0.0, 0.0),
    "gaussian-frank-wolfe": (2.9e-02, 1.1e-08, 0.0, 4.2e-03, 0.0, 0.0, 0.0),
    "noisy-gradient": (1.1e-02, 8.4e-08, 0.0, 8.2e-04, 2.2e-09, 1.5e-08, 0.0),
    "scaled-gradient": (0.0, 0.0, 0.0, 1.6e-03, 4.0e-09, 6.2e-08, 0.0),
    "whitened-gradient": (0.0, 0.0, 3.6e-09, 0.0, 1.9e-09, 3.9e-07, 7.4e-05),
    "averaged-gradient": (0.0, 0.0, 2.4e-09, 0.0, 5.9e-09, 2.0e-07, 8.6e-05),
    "class-sums": (3.8e-02, 1.6e-08, 2.4e-11, 0.0, 0.0, 1.5e-07, 0.0),
    "objective-perturbation": (1.6e00, 1.3e-06, 0.0, 0.0, 0.0, 2.8e-05, 1.3e-04),
    "hard-thresholding": (2.9e-02, 7.8e-09, 0.0, 3.5e-03, 9.7e-10, 7.9e-09, 0.0),
    "peeling": (2.3e-02, 1.8e-08, 0.0, 7.2e-03, 1.6e-09, 0.0, 0.0),
    "projected": (5.6e-01, 0.0, 6.0e-09, 0.0, 5.2e-09, 8.0e-07, 1.3e-04),
    "posterior-sampling": (0.0, 0.0, 1.0e-08, 0.0, 0.0, 1.0e-05, 2.3e-02),
}

#: Solvers that are not measured are taken for this one.
LIKE = "noisy-gradient"

#: Bytes for an entry of the rows, as they are stored.
STORED = 12

#: Bytes for an entry of what a fit makes of the rows.
BYTES = {
    "greedy": 53,
    "refitted-frank-wolfe": 53,
    "sufficient-statistics": 53,
    "frank-wolfe": 15,
    "gaussian-frank-wolfe": 15,
    "noisy-gradient": 17,
    "scaled-gradient": 51,
    "whitened-gradient": 51,
    "averaged-gradient": 51,
    "class-sums": 27,
    "objective-perturbation": 15,
    "hard-thresholding": 16,
    "peeling": 15,
    "projected": 28,
    "posterior-sampling": 34,
}

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
    name = plan.solver.partition(" ")[0]  # a projection says more about itself
    solver = name if name in SECONDS else LIKE
    begin, entry, squared, *step = SECONDS[solver]
    each = step[0] + step[1] * entries + step[2] * rows + step[3] * columns
    seconds = begin + entries * (entry + columns * squared) + plan.steps * plan.fits * each
    return Cost(seconds, BEGIN + entries * (STORED + BYTES[solver]) + 16.0 * rows)


def duration(seconds: float) -> str:
    """A time in words, to one or two digits."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "1 s"


def size(count: float) -> str:
    """Bytes in words."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
