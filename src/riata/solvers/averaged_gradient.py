"""Slow gradient descent, averaged, for so few rows that second moments are lost in noise.

Two scales, the best constant, the mean row and, where some of it can be seen, the spread of the
rows are measured first. The gradients have most of the budget, and two releases along the model say
how much of it to keep. The proofs are in docs/privacy/whitened_gradient.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riata.curator import Curator
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.queries import (
    JointMoments,
    LimitedSlope,
    PreconditionedGradient,
    SlopeSizes,
    Whitening,
)
from riata.solvers import defaults
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.constant_share import constant_share, posterior, weight_of_share
from riata.solvers.empirical_bayes import (
    best_constant,
    class_part,
    signal_odds,
)
from riata.solvers.measured_constant import releases
from riata.solvers.plan import Plan, count_steps
from riata.solvers.requirements import Requirement
from riata.solvers.row_spread import RowSpread
from riata.solvers.solution import Callback, Solution
from riata.solvers.whitened_defaults import (
    LARGEST,
    MOST_MARGINS,
    REACH,
    SAFE,
    in_range,
    limited,
)
from riata.solvers.whitened_errors import steady_offset
from riata.solvers.whitened_gradient import WhitenedGradient
from riata.solvers.whitened_line import has_moments
from riata.solvers.whitened_run import Run
from riata.solvers.whitened_shares import CONSTANTS, STEPS, along_share, scale_share
from riata.vectors import Vector

# The numbers below were chosen by the scores of 2,000 x 100, 1,000 x 8, 1,500 rows of two classes
# and shuffled targets (benchmarks/arena_designs.py) and of tumours, at epsilon 0.3 and 1; affairs
# and rows of independent columns were looked at afterwards. With a CUT of 1.5, 2,000 x 100 has .04
# of R2 less and tumours .05 of AUC; with a HARM of 0.01, 1,000 x 8 has .17 less; with 24 steps both
# have .02 to .08 less.

#: So many gradients where delta is 0: the epsilon of one falls with their number, not its root.
PURE_STEPS = 3

#: The constant beside a row, as a part of its typical length.
CONSTANT = 0.35

#: What the best constant gets of the budget at least, the mean row, the second moments around it,
#: the gradients, and the estimate of the fit.
SHARES = {"constant": 0.04, "centre": 0.06, "spread": 0.1, "gradient": 0.8, "check": 0.015}

#: With rows times strength below so many times the root of the columns, the noise of the mean row
#: is as long as half a row, and neither it nor second moments are released.
SEEN = 20.0

#: Rows are shortened to this multiple of their usual length where their second moments are
#: released. Their directions stay, and noise grows with the square of it.
LENGTH = 1.3

#: Which directions are stretched is best for models that explain this part of the variance of the
#: slopes. With a quarter, coordinates follow directions of which nothing is learned: loans lose .02
#: of AUC at epsilon 1; between .01 and .05 hardly anything differs.
EXPLAINED = 0.015

#: Beyond this margin each row of a class has the same slope.
FAR = 20.0

#: The mean squared length of a row, in units of a stretched high quantile.
USUAL = 0.2

#: Summands are shortened to this multiple of their typical length, for numbers and for classes and
#: counts. Shorter summands have less noise for their length and make shorter models, which only
#: `whitened_line.py` mends without a guess.
CUT, CUT_OF_CLASSES = 0.5, 1.0

#: The root mean square of slopes, as a part of a stretched high quantile: 1 / 2 of normal ones.
USUAL_SLOPE = 0.6

#: Before anything is seen, the mean slope lies within this part of the slopes' scale.
CENTRED = 0.4

#: The scale of slopes and the curvature at the constant are at least this part of the largest:
#: those of a hinge may be 0.
LEAST = 0.1

#: Coordinates are flat, and their errors unknown, if they have less than this part of the typical
#: second moment.
FLAT = 0.5

#: The noise of the model explains this part of the variance that there is; but all steps together
#: are no shorter, and no longer, than so many times a Newton step along a direction that all rows
#: share. Where second moments are known the longest way is one along the largest of them.
HARM, SHORTEST, LONGEST = 0.03, 1.5, 10.0

#: The variance of log odds that would explain the labels of classes that are alike. Those of rarer
#: ones take more, but models have no larger margins.
LARGE_MARGINS = 4.0


@dataclass(frozen=True)
class AveragedGradient(WhitenedGradient):
    """Slow noisy gradients from the best constant, averaged, and scaled along a line.

    Right for so few rows that noise hides the second moments of all directions: then the mean of
    gradients is what can be seen.

    Parameters
    ----------
    steps : int or "auto", default="auto"

    Notes
    -----
    *Privacy.* The rows are read for two scales, for the best constant, for the mean row and second
    moments around it, for the gradients, for two gradients or joint second moments along the model,
    and for an estimate of the fit. All releases are planned before: Gaussian ones, whose
    composition is exact, or Laplace ones where delta is 0.
    """

    name = "averaged-gradient"
    radius_policy: ClassVar[str] = "open"
    keeps_unpenalized: ClassVar[bool] = False
    requirements: ClassVar[tuple[Requirement, ...]] = WhitenedGradient.requirements[1:]

    def usual_steps(self, budget: Budget) -> int:
        return STEPS if budget.delta > 0 else PURE_STEPS

    def parts(
        self, problem: Problem, steps: int, strength: float, *, pure: bool
    ) -> dict[str, tuple[int, float]]:
        scale, measured = scale_share(strength), problem.loss.measured_curvature
        found = {"lengths": (1, scale)}
        if measured:
            found["slopes"] = (CONSTANTS + 1, 2 * scale)
        elif not problem.loss.classifies:
            found["slopes"] = (1 + problem.fit_intercept, scale)
        seen = strength >= SEEN * problem.n_features**0.5 and not measured
        if seen and problem.fit_intercept:
            found["centre"] = (1, SHARES["centre"])
        if seen and not pure:  # Laplace noise on a matrix hides it
            found["spread"] = (1, SHARES["spread"])
        found["gradient"] = (steps, SHARES["gradient"])
        found |= {"along": (2, along_share(strength)), "check": (1, SHARES["check"])}
        if measured or problem.fit_intercept:
            share = constant_share(strength, SHARES["constant"])
            share = weight_of_share(share, sum(weight for _, weight in found.values()))
            found["constant"] = (releases(problem, CONSTANTS) if measured else 1, share)
        return found

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        run = _Run(plan, problem, curator)
        run.begin()
        run.descend(callback)
        run.shrink()
        return run.solution()


class _Run(Run):
    """One fit, in units of the rows' scale."""

    safe, safe_for_rows, along_constant, usual_slope = SAFE, 0.5, 0.5, USUAL_SLOPE

    #: The part of the rows that are of the first class.
    part = 1.0

    #: The largest second moment of a coordinate, or all of them together.
    largest = USUAL

    #: Which coordinates have second moments that are lost in noise, if these were released.
    lost: np.ndarray | None = None

    def begin(self) -> None:
        super().begin()
        if self.problem.fit_intercept and not self.problem.loss.measured_curvature:
            self._find_best_constant()
        if "centre" in self.plan.times:
            self._centre()
        self.spread, self.trace = self.scale, USUAL
        # The spread of margins lies between that of rows that point anywhere and of rows that all
        # point along the model.
        self.ratios = np.full(len(self.w), self.trace / math.sqrt(len(self.w)))
        if "spread" in self.plan.times:
            self._stretch()

    def _find_best_constant(self) -> None:
        """One step along the mean slope, shrunk; then the slopes have a scale of their own."""
        problem, loss, bound = self.problem, self.problem.loss, self.problem.offset_bound
        found, noise = self.release("constant", LimitedSlope(problem, self.constant, self.widest))
        slope, noise = posterior(float(found[0]), noise, CENTRED * self.widest)
        self.constant_error = noise / self.curvature
        if loss.classifies:
            self.part = class_part(loss, slope)
            self.offset, self.curvature = best_constant(loss, slope, bound)
            margins, targets = np.full(2, self.offset), np.array(loss.class_targets())
            slopes = np.abs(loss.slope(margins, targets))
            self.steep = float(slopes.max())
            self.scale = in_range(max(math.sqrt(float(slopes.prod())), LEAST * self.steep))
            least = LEAST * loss.curvature_bound(problem.y_bound)
            self.curvature = in_range(max(self.curvature, least))
        else:
            self.offset = float(np.clip(-slope / self.curvature, -bound, bound))
        self.constant = self.constant.with_offset(self.offset)
        if not loss.classifies:
            self.scale = self._size("slopes", SlopeSizes(problem, self.constant), self.safe)

    def _centre(self) -> None:
        """Take the mean row for the origin, or that of the larger class, shrunk by its noise.

        A mean whose square is within three standard deviations of the noise's counts as 0: it would
        only make rows longer.

        Far from all targets each row has the same slope, or each row of a class and the others
        none: a gradient there is the sum of these rows.
        """
        problem, ends = self.problem, self._targets()
        far = [FAR, -FAR] if problem.loss.classifies else [2 * problem.y_bound]
        slopes = [problem.loss.slope(np.full(len(ends), margin), ends).min() for margin in far]
        k = int(np.abs(slopes).argmax())
        level = math.copysign(in_range(abs(float(slopes[k]))), float(slopes[k]))
        model = Vector.zero(problem.n_features).with_offset(far[k])
        query = PreconditionedGradient(
            problem, model, abs(level), self.whitening, REACH, 0.0, abs(level)
        )
        found, noise = self.release("centre", query)
        level *= max(self.part, 1 - self.part)
        found, noise = limited(found / level), noise / abs(level)
        square = float(found @ found)
        of_noise = noise**2 * (len(found) + defaults.SURE * math.sqrt(2 * len(found)))
        kept = max(1 - of_noise / square, 0.0) if square else 0.0
        kept /= max(kept * math.sqrt(square), 1.0)  # rows are hardly longer than their scale
        self.whitening = Whitening.of(self.whitening.matrix, kept * found)

    def _stretch(self) -> None:
        """Go to coordinates in which noise on gradients costs least, by released second moments.

        They are those of the rows alone: in the unit that slopes have here all of them are 0.
        """
        p, length = self.problem.n_features, LENGTH * math.sqrt(USUAL)
        query = JointMoments(
            self.problem, self.constant, self.widest, self.whitening, LARGEST, length, 0.0
        )
        matrix, noise = self.release("spread", query)
        noise /= math.sqrt(2)  # off the diagonal
        found = np.clip(matrix[:p, :p], -(length**2), length**2)
        spread = RowSpread.of(found, noise, USUAL)
        constant = CONSTANT if self.problem.fit_intercept else 0.0
        of_one = PreconditionedGradient(
            self.problem, self.constant, math.inf, self.whitening, REACH, 0.0, 1.0
        )
        noise = noise_std(self.plan["gradient"], of_one) / math.sqrt(self.plan.steps)
        noise *= self.cut * math.hypot(1.0, constant)
        slopes = 1.0 if self.problem.loss.classifies else USUAL_SLOPE**2
        explained = EXPLAINED * self.learnable / self.explained
        floor = spread.best_floor(noise, slopes, explained, self.problem.n_rows)
        self.whitening, self.ratios = spread.coordinates(self.whitening, floor)
        self.trace, self.largest = float(self.ratios.sum()), float(self.ratios.max())
        self.ratios *= spread.most  # margins that are spread farther are the safe side
        self.lost = spread.lost

    @property
    def cut(self) -> float:
        """Where summands of gradients are clipped, in units of their typical length."""
        return CUT if has_moments(self) else CUT_OF_CLASSES

    def _targets(self) -> np.ndarray:
        """The code of the larger class, or the ends of the range of numbers."""
        if self.problem.loss.classifies:
            first, second = self.problem.loss.class_targets()
            return np.array([first if self.part >= 0.5 else second])
        return self.problem.y_bound * np.array([-1.0, 1.0])

    @property
    def learnable(self) -> float:
        """The variance of margins that there is to learn.

        To explain all labels of a rare class it would be far larger than that of any model.
        """
        classifies = self.problem.loss.classifies
        return min(self.explained, LARGE_MARGINS) if classifies else self.explained

    def descend(self, callback: Callback | None) -> None:
        """Steps as long as their noise allows; the last half of the iterates is averaged."""
        problem, steps = self.problem, self.plan.steps
        typical = math.sqrt(self.trace)
        constant = CONSTANT * typical if problem.fit_intercept else 0.0
        clip = self.cut * self.scale * math.hypot(typical, constant)
        limit = clip / constant if constant else math.inf
        root = math.sqrt(self.explained)
        w, offset, first = np.zeros(problem.n_features), self.offset, steps // 2
        self.w, self.offset, rate, noise = np.zeros(len(w)), 0.0, 0.0, 0.0
        for t in count_steps(steps, callback):
            query = PreconditionedGradient(
                problem, self.model(w, offset), limit, self.whitening, REACH * typical, constant,
                clip,
            )  # fmt: skip
            gradient, noise = self.release("gradient", query)
            if not rate:
                alone = max(noise / math.sqrt(steps) / self.curvature, 1e-9 * root)
                far = math.sqrt(HARM * self.learnable / self.trace) / alone
                rate = min(max(far, SHORTEST / self.trace), LONGEST / self.largest) / steps
            w = limited(w - rate / self.curvature * gradient[: len(w)])
            if constant:
                offset -= (
                    min(rate, 0.5 / constant**2) * constant / self.curvature * float(gradient[-1])
                )
            if t > first:
                self.w = self.w + w / (steps - first)
                self.offset += offset / (steps - first)
        counted = np.minimum(np.arange(steps, 0, -1) / (steps - first), 1.0)
        self.error = rate * noise / self.curvature * math.sqrt(float(counted @ counted))
        self.most = MOST_MARGINS if problem.loss.classifies else root**2
        self.odds = signal_odds(self.w, self.error)
        half = root**2 / 4 / max(float(self.w @ self.w), 1e-20 * root**2)
        unknown = np.full(len(w), half < FLAT) if self.lost is None else self.lost
        self.flat = unknown | problem.loss.classifies
        self.columns = np.ones(len(w), dtype=bool)
        alone = noise / self.curvature / math.sqrt(steps)
        self.offset_error = alone / constant if constant else None
        steady_offset(self)
