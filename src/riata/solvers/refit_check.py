"""What a refit ends with: a model is kept if it is surely better than one that takes no search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from riata.solvers import defaults
from riata.solvers.comparison import comparison, read_comparison
from riata.solvers.solution import Fit
from riata.vectors import Vector, length

if TYPE_CHECKING:
    from riata.solvers.refit import Run


def check(run: Run) -> None:
    """Keep the model only if it is surely better than the best constant.

    Or, if there are unpenalized columns, than the model of these.
    """
    if not run.support:  # then all that is left is best spent on the constant
        if run.problem.fit_intercept:
            run.measure_constant(run.remaining.left)
        run.theta = run.constant
        return
    run.theta = _projected(run)
    unpenalized = list(run.problem.unpenalized)
    if run.support == unpenalized:  # which are there whatever a comparison says
        run.fit, _ = _compared(run, run.constant, run.remaining.left)
        return
    run.fit, better = _compared(run, run.constant, run.remaining.left / (2 if unpenalized else 1))
    if unpenalized:
        _, better = _compared(run, run.base[0], run.remaining.left)
    if not better:
        run.theta, run.errors, run.offset_error = run.base
        run.support = unpenalized


def _compared(run: Run, other: Vector, amount: float) -> tuple[Fit, bool]:
    high = run.slopes.quantile(defaults.HIGH_QUANTILE)
    query = comparison(run.problem, run.theta, other, high)
    return read_comparison(*run.answer(query, amount))


def _projected(run: Run) -> Vector:
    """The nearest model in the set; its intercept moves as far towards that of the base."""
    before, at = run.theta.dense(), run.problem.penalized
    dense = run.problem.project(before)
    kept = length(dense[at]) / max(length(before[at]), 1e-300) if before[at].any() else 1.0
    flat = run.base[0].offset
    return Vector.of(dense).with_offset(flat + min(kept, 1.0) * (run.theta.offset - flat))
