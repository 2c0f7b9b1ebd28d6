"""Private Frank-Wolfe with clipped slopes and entries, and a refit of the columns it visited."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from riata.privacy.events import Event
from riata.problem import Problem
from riata.sets import PolytopeSet
from riata.solvers import defaults
from riata.solvers.refit import Refit, Run, ruled_selections
from riata.solvers.requirements import Requirement
from riata.vectors import Vector

_SIGNED_COLUMNS = Requirement(
    lambda p, b: isinstance(p.set, PolytopeSet) and p.set.by_column and p.set.symmetric,
    lambda p, b: str(p.set),
    "it moves between the vertices of an l1 ball",
    'Use solver="greedy"',
)


@dataclass(frozen=True)
class RefittedFrankWolfe(Refit):
    """Frank-Wolfe over the l1 ball that only has to find columns: a refit then fits them.

    Each step selects one column and its sign as `PrivateFrankWolfe` does, but with slopes and
    entries clipped at private scales, so that its noise shrinks as the model gets better. The
    radius matters for the search alone.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        "auto" follows an explicit rule. Public.

    Notes
    -----
    *Privacy.* As for `PrivateGreedy`: docs/privacy/refit.md.

    *Differences from the paper.* Vertices are those of the ball in which each column counts in
    units of its bound, which is the l1 ball where all columns have the same bound.
    """

    name = "refitted-frank-wolfe"
    radius_policy: ClassVar[str] = "narrow"
    requirements = (*Refit.requirements, _SIGNED_COLUMNS)

    def selections(self, problem: Problem, paid: Event) -> int:
        return max(1, round(ruled_selections(problem, paid) / defaults.SELECTIONS))

    def searches(self, steps: int) -> tuple[str, ...]:
        return (f"{steps} private selections of a column and its sign",)

    def search(self, run: Run) -> None:
        size = run.problem.n_features
        radius = run.problem.set.radius_in("linf") * float(max(run.units))
        every = max(1, run.steps // defaults.SCALES_IN_SEARCH)
        alone, found = run.theta, Vector.zero(size)
        for t in range(1, run.steps + 1):
            column, sign = run.select(defaults.SEARCH * run.whole / run.steps)
            vertex = Vector.unit(size, column, -sign * radius / float(run.units[column]))
            found = found.toward(vertex, Fraction(2, t + 2))
            run.theta = alone.plus(found) if len(alone.support) else found.with_offset(alone.offset)
            run.keep(column)
            if t % every == 0 and t // every <= defaults.SCALES_IN_SEARCH:
                run.measure_slopes()
            run.notify_progress()
