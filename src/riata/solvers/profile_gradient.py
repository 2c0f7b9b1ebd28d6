"""Whitened gradients of a loss whose nuisance parameters are fitted beside the model.

Such as the thresholds of ordered classes and the baseline hazards of bands of time. In between the
steps of the model the parameters follow from a released table, so that both together come to the
maximum of the likelihood. The proof is in docs/privacy/nuisance.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from riata.curator import Curator
from riata.losses import NuisanceLoss
from riata.problem import Problem
from riata.queries import NuisanceSums
from riata.solvers.empirical_bayes import signal_part
from riata.solvers.plan import Plan
from riata.solvers.requirements import nuisance_parameters
from riata.solvers.solution import Callback, Fit, Solution
from riata.solvers.whitened_gradient import WhitenedGradient
from riata.solvers.whitened_run import Run
from riata.vectors import Vector

#: What the tables get of the budget: those on the way together, and the last one, whose noise is
#: that of the parameters.
ON_THE_WAY, LAST = 0.06, 0.06

#: A table before the steps, and after each of so many that is not the last.
EVERY = 6

#: Summands of gradients are shortened to a multiple of their typical length that grows with rows
#: times strength for each column, so that their noise stays the same small part of the model: at
#: the multiples of `Run` a model without noise would be wrong by up to three hundredths of itself.
CUT_FROM, MOST_CUT = 1000.0, 20.0

#: How far the curvature usually falls on the way to the model, on average, how many times as far it
#: counts as fallen at the end, and what is left of it at least. In the designs of the unit tests it
#: falls by a sixth on average; once as far, Cox intervals at epsilon 4 covered 86% and not 89%.
FALLS, AT_THE_END, LEAST_LEFT = 0.25, 1.5, 0.25

#: Margins in a table reach to this many of their standard deviations, within limits. Of normal
#: margins one in 30,000 is larger.
DEVIATIONS, LEAST_REACH, LARGEST_REACH = 4.0, 0.5, 4.0


@dataclass(frozen=True)
class ProfileGradient(WhitenedGradient):
    """Whitened gradients, and tables from which nuisance parameters follow.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        The number of gradients.

    Notes
    -----
    *Privacy.* The rows are read as by `WhitenedGradient`, but for the estimate of the fit, and for
    a table of the parts of the loss before the first round, after the last one, after every sixth
    gradient, at the model of unpenalized columns if there are any, and at the end. All releases are
    Gaussian and planned before, so that their composition is exact.
    """

    name = "profile-gradient"
    requirements = (*WhitenedGradient.requirements, nuisance_parameters)
    fits_nuisance: ClassVar[bool] = True

    def parts(
        self, problem: Problem, steps: int, strength: float, *, pure: bool
    ) -> dict[str, tuple[int, float]]:
        found = super().parts(problem, steps, strength, pure=pure)
        del found["check"]
        tables = 2 + (steps - 1) // EVERY + bool(problem.unpenalized)
        found["table"] = (tables, ON_THE_WAY)
        return found | {"last table": (1, LAST)}

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        return self.fit(_Run(plan, problem, curator), callback)


class _Run(Run):
    """One fit, whose problem has the present nuisance parameters."""

    def begin(self) -> None:
        self._fit_nuisance("table", Vector.zero(self.problem.n_features), 0.0, constant=True)
        self._of_constant = self.problem
        super().begin()

    def first_end(self) -> tuple[Problem, Vector]:
        """With its own parameters: then the slopes are those of the profile likelihood."""
        last, theta = super().first_end()
        if not last.unpenalized:
            return self._of_constant, theta
        self._fit_nuisance("table", theta, self._spread(np.asarray(self.alone)))
        first, self.problem = self.problem, last
        return first, theta

    def descend(self, callback: Callback | None) -> None:
        self._fit_nuisance("table", self.model(self.w, self.offset), self._spread(self.w))
        super().descend(callback)

    def after_step(self, t: int, w: np.ndarray, offset: float) -> None:
        if t % EVERY == 0 and t < self.plan.steps:
            self._fit_nuisance("table", self.model(w, offset), self._spread(w))

    @property
    def least_cut(self) -> float:
        return min(self.strength / CUT_FROM, MOST_CUT)

    def _spread(self, w: np.ndarray) -> float:
        """The standard deviation of margins."""
        return math.sqrt(float(self.ratios @ np.square(w)))

    def _fit_nuisance(
        self, role: str, theta: Vector, spread: float, *, constant: bool = False
    ) -> None:
        problem, loss = self.problem, self.problem.loss
        assert isinstance(loss, NuisanceLoss)
        reach = min(max(DEVIATIONS * spread, LEAST_REACH), LARGEST_REACH)
        means, noise = self.release(role, NuisanceSums(problem, theta, reach))
        self.problem = replace(problem, loss=loss.refitted(means, noise, reach, constant=constant))

    def shrink(self) -> None:
        """And errors by the curvature at the model, extrapolated from that at 0 and on the way."""
        super().shrink()
        first = self.curvature
        fell = (1 - self.secant / first) * signal_part(FALLS, self.secant_error / first)
        last = first * min(max(1 - AT_THE_END * fell, LEAST_LEFT), 1.0)
        n = self.problem.n_rows
        sampled = self.scale / first / math.sqrt(n)
        noise, self.sampled = (
            math.sqrt(max(self.error**2 - sampled**2, 0.0)),
            1 / math.sqrt(n * last),
        )
        self.error = math.hypot(noise * first / last, self.sampled)

    def fit_of(self, model: Vector) -> Fit | None:
        """None: the best constant of other nuisance parameters would have to be found for it."""
        return None

    def solution(self) -> Solution:
        found = super().solution()
        spread = self.kept * self._spread(self.w)
        if self.problem.unpenalized:  # of which all is kept
            spread = self._spread(self.alone + self.kept * (self.w - self.alone))
        self._fit_nuisance("last table", found.theta, spread)
        return replace(found, loss=self.problem.loss)
