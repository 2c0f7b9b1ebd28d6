"""What a fit takes: seconds and memory, from its plan and the shape of the rows.

The constants were measured by `python benchmarks/costs.py`, which fits every solver to seven arrays
and seven tables of sparse rows, 1,000 to 200,000 of them, each in a process of its own, and fits
the parts below to the seconds of a processor. The parts miss these measurements by a factor of at
most 1.5, those of "sufficient-statistics" by 3.2. Those of objective perturbation, projections and
posterior samples are of an earlier version. Another machine may well be twice as quick, and reading
a file comes on top. A solver that decides while it runs may end early: a forecast knows after how
many steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from riata.solvers import Plan

#: For each solver, seconds: once, for an entry, for a row times the square of the number of
#: columns, for each step, and in each step for an entry, for a row and for a column; and bytes for
#: an entry of what a fit makes of the rows. Of arrays:
FULL: dict[str, tuple[float, ...]] = {
    "greedy": (2.6e-02, 0.0, 0.0, 1.9e-03, 1.7e-09, 0.0, 1.1e-07, 11),
    "refitted-frank-wolfe": (3.1e-02, 7.7e-09, 0.0, 6.3e-04, 7.0e-10, 7.7e-08, 0.0, 19),
    "sufficient-statistics": (2.4e-02, 3.5e-08, 7.7e-11, 0.0, 0.0, 1.6e-06, 0.0, 11),
    "frank-wolfe": (1.7e-02, 3.9e-09, 0.0, 2.6e-03, 0.0, 7.6e-09, 1.1e-06, 6),
    "gaussian-frank-wolfe": (2.5e-02, 4.2e-09, 2.8e-12, 7.7e-04, 4.1e-10, 2.6e-08, 0.0, 6),
    "noisy-gradient": (2.9e-02, 0.0, 0.0, 1.6e-04, 1.1e-09, 8.6e-09, 9.2e-07, 4),
    "scaled-gradient": (0.0, 0.0, 0.0, 1.2e-03, 1.4e-09, 3.4e-08, 0.0, 12),
    "whitened-gradient": (0.0, 0.0, 4.0e-10, 3.2e-03, 1.8e-09, 7.0e-08, 0.0, 8),
    "averaged-gradient": (0.0, 0.0, 3.2e-11, 2.7e-03, 2.4e-09, 3.3e-08, 0.0, 9),
    "class-sums": (3.4e-02, 1.8e-08, 0.0, 1.5e-03, 0.0, 9.7e-08, 0.0, 6),
    "hard-thresholding": (2.3e-02, 3.6e-09, 0.0, 1.2e-03, 1.5e-09, 8.4e-09, 0.0, 5),
    "peeling": (2.5e-02, 3.9e-09, 0.0, 4.1e-03, 1.1e-09, 2.6e-08, 0.0, 5),
    "joint-class-sums": (0.0, 1.2e-08, 0.0, 3.0e-02, 0.0, 4.8e-07, 3.2e-07, 5),
    "softmax-gradient": (0.0, 0.0, 0.0, 1.3e-03, 2.3e-09, 6.8e-08, 1.9e-07, 5),
    "objective-perturbation": (1.6, 1.3e-06, 0.0, 0.0, 0.0, 2.8e-05, 1.3e-04, 15),
    "projected": (5.6e-01, 0.0, 6.0e-09, 0.0, 5.2e-09, 8.0e-07, 1.3e-04, 28),
    "posterior-sampling": (0.0, 0.0, 1.0e-08, 0.0, 0.0, 1.0e-05, 2.3e-02, 34),
}

#: The same of sparse rows.
SPARSE: dict[str, tuple[float, ...]] = {
    "greedy": (3.5e-02, 2.0e-08, 0.0, 0.0, 5.4e-09, 6.3e-08, 0.0, 54),
    "refitted-frank-wolfe": (3.3e-02, 5.0e-08, 0.0, 6.7e-04, 0.0, 9.4e-08, 0.0, 58),
    "sufficient-statistics": (2.8e-02, 8.8e-08, 5.4e-11, 0.0, 0.0, 3.2e-06, 3.5e-05, 66),
    "frank-wolfe": (3.3e-02, 8.2e-09, 0.0, 0.0, 1.6e-09, 2.7e-08, 0.0, 20),
    "gaussian-frank-wolfe": (2.3e-02, 1.1e-08, 0.0, 2.4e-03, 1.9e-09, 0.0, 0.0, 7),
    "noisy-gradient": (2.3e-02, 1.9e-08, 0.0, 3.9e-04, 9.0e-10, 2.6e-08, 1.9e-07, 0),
    "scaled-gradient": (0.0, 0.0, 0.0, 1.2e-03, 2.8e-09, 3.8e-08, 8.2e-08, 19),
    "whitened-gradient": (0.0, 0.0, 3.9e-10, 1.5e-03, 4.6e-08, 0.0, 3.0e-05, 31),
    "averaged-gradient": (0.0, 0.0, 1.7e-10, 1.4e-03, 3.5e-08, 0.0, 2.7e-05, 31),
    "class-sums": (3.5e-02, 3.6e-08, 1.2e-15, 0.0, 0.0, 1.0e-07, 0.0, 10),
    "hard-thresholding": (2.9e-02, 0.0, 7.2e-16, 1.7e-03, 3.9e-09, 0.0, 0.0, 7),
    "peeling": (2.2e-02, 8.3e-09, 3.6e-16, 6.2e-03, 2.7e-09, 0.0, 0.0, 10),
    "joint-class-sums": (2.7e-02, 3.0e-08, 0.0, 0.0, 0.0, 5.8e-07, 4.7e-07, 10),
    "softmax-gradient": (0.0, 0.0, 0.0, 1.5e-03, 6.5e-09, 7.5e-08, 2.8e-07, 18),
    "objective-perturbation": (1.6, 1.3e-06, 0.0, 0.0, 0.0, 2.8e-05, 1.3e-04, 15),
    "projected": (5.6e-01, 0.0, 6.0e-09, 0.0, 5.2e-09, 8.0e-07, 1.3e-04, 28),
    "posterior-sampling": (0.0, 0.0, 1.0e-08, 0.0, 0.0, 1.0e-05, 2.3e-02, 34),
}

#: Solvers that are not measured are taken for this one.
LIKE = "noisy-gradient"

#: A solver that decides while it runs takes about this part of the steps of its plan, if nobody has
#: simulated it: of six tables between 0.1 and 0.3.
USUAL_PART = 0.25

#: Rows with entries in this part of the columns are stored as an array.
MOSTLY_FULL = 0.5

#: Bytes for an entry as it is stored, in an array and in sparse rows.
STORED_FULL, STORED_SPARSE = 8, 12

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
    full = entries >= MOSTLY_FULL * rows * columns
    constants, stored = (FULL, STORED_FULL) if full else (SPARSE, STORED_SPARSE)
    begin, entry, squared, *step, made = constants.get(name, constants[LIKE])
    each = step[0] + step[1] * entries + step[2] * rows + step[3] * columns
    usual = plan.steps * (USUAL_PART if plan.adaptive else 1.0)
    taken = usual if steps is None else min(steps, plan.steps)
    seconds = begin + entries * entry + rows * columns**2 * squared + taken * plan.fits * each
    return Cost(seconds, BEGIN + entries * (stored + made) + 16.0 * rows)


def duration(seconds: float) -> str:
    """A time in words, to one or two digits."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "1 s"


def size(count: float) -> str:
    """Bytes in words."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
