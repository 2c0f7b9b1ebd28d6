"""What a fit takes: seconds and memory, from its plan and the shape of the rows.

The constants were measured by `python benchmarks/costs.py`, which fits every solver to seven tables
of sparse rows, 1,000 to 60,000 of them, each in a process of its own, and fits the parts below to
the seconds of a processor. The parts miss these measurements by a factor of at most 1.5, and
fits of three other shapes (`--check`) by at most 1.6. Those of
objective perturbation, projections and posterior samples are of an earlier version, in which the
others took longer too. Another machine may well be twice as quick, and reading a file comes on top.
A solver that decides while it runs may end early: a forecast knows after how many steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from riata.solvers import Plan

#: For each solver, seconds: once, for an entry, for an entry times the number of columns, for each
#: step, and in each step for an entry, for a row and for a column.
SECONDS = {
    "greedy": (1.8e-02, 4.2e-08, 0.0, 2.6e-03, 2.7e-09, 7.4e-09, 4.4e-07),
    "refitted-frank-wolfe": (1.9e-02, 4.6e-08, 0.0, 1.6e-03, 7.3e-10, 3.1e-08, 1.1e-06),
    "sufficient-statistics": (7.0e-03, 1.4e-08, 0.0, 0.0, 0.0, 3.4e-06, 3.6e-04),
    "frank-wolfe": (2.2e-02, 1.5e-08, 0.0, 1.5e-03, 1.7e-10, 2.3e-09, 6.0e-07),
    "gaussian-frank-wolfe": (2.6e-02, 1.4e-08, 0.0, 2.0e-03, 0.0, 0.0, 0.0),
    "noisy-gradient": (8.9e-02, 1.8e-08, 5.8e-12, 2.3e-04, 1.1e-09, 1.6e-08, 0.0),
    "scaled-gradient": (0.0, 0.0, 0.0, 1.0e-03, 2.1e-09, 4.6e-08, 0.0),
    "whitened-gradient": (0.0, 0.0, 2.7e-09, 0.0, 0.0, 2.3e-07, 6.9e-05),
    "averaged-gradient": (0.0, 0.0, 2.2e-09, 0.0, 0.0, 1.9e-07, 6.0e-05),
    "class-sums": (3.1e-02, 2.3e-08, 0.0, 0.0, 3.0e-09, 0.0, 6.2e-07),
    "objective-perturbation": (1.6e00, 1.3e-06, 0.0, 0.0, 0.0, 2.8e-05, 1.3e-04),
    "hard-thresholding": (2.7e-02, 9.1e-09, 0.0, 1.5e-03, 1.6e-09, 0.0, 3.2e-07),
    "peeling": (2.2e-02, 3.4e-08, 0.0, 3.4e-03, 1.3e-09, 0.0, 0.0),
    "projected": (5.6e-01, 0.0, 6.0e-09, 0.0, 5.2e-09, 8.0e-07, 1.3e-04),
    "posterior-sampling": (0.0, 0.0, 1.0e-08, 0.0, 0.0, 1.0e-05, 2.3e-02),
}

#: Solvers that are not measured are taken for this one.
LIKE = "noisy-gradient"

#: Bytes for an entry of the rows, as they are stored.
STORED = 12

#: Bytes for an entry of what a fit makes of the rows.
BYTES = {
    "greedy": 48,
    "refitted-frank-wolfe": 47,
    "sufficient-statistics": 62,
    "frank-wolfe": 23,
    "gaussian-frank-wolfe": 23,
    "noisy-gradient": 13,
    "scaled-gradient": 23,
    "whitened-gradient": 32,
    "averaged-gradient": 31,
    "class-sums": 24,
    "objective-perturbation": 15,
    "hard-thresholding": 23,
    "peeling": 22,
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


def cost_of(plan: Plan, entries: float | None = None, steps: float | None = None) -> Cost:
    """Estimate time and memory of a fit.

    Parameters
    ----------
    plan : Plan
    entries : float, optional
        How many entries of the rows are not 0; by default all.
    steps : float, optional
        How many steps a fit takes, if it may end before those of its plan: `Forecast.steps`.
    """
    rows, columns = plan.problem.n_rows, plan.problem.n_features
    entries = float(rows * columns) if entries is None else float(entries)
    name = plan.solver.partition(" ")[0]  # a projection says more about itself
    solver = name if name in SECONDS else LIKE
    begin, entry, squared, *step = SECONDS[solver]
    each = step[0] + step[1] * entries + step[2] * rows + step[3] * columns
    taken = plan.steps if steps is None else min(steps, plan.steps)
    seconds = begin + entries * (entry + columns * squared) + taken * plan.fits * each
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
