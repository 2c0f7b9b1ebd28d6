"""One fit by whitened gradients, release by release."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from riata.curator import Curator
from riata.grid import X_STEPS
from riata.problem import Problem
from riata.queries import (
    JointMoments,
    LengthSizes,
    PreconditionedGradient,
    Query,
    Sizes,
    SlopeSizes,
    Support,
    Whitening,
)
from riata.queries.whitening import MOST_BEFORE
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.comparison import comparison, read_comparison
from riata.solvers.constant_share import posterior
from riata.solvers.empirical_bayes import (
    FLAT_PART,
    best_constant,
    high_length,
    high_quantile,
    known_errors,
    lost_in_noise,
)
from riata.solvers.gradient_path import AveragedSteps, GradientRoot, path_of
from riata.solvers.measured_constant import MeasuredConstant, first_constant, likely_shift
from riata.solvers.plan import Plan, count_steps
from riata.solvers.solution import Callback, Fit, Solution
from riata.solvers.unpenalized import Split
from riata.solvers.whitened_defaults import (
    CENTRED,
    CONSTANT,
    CUT,
    CUT_ALONG,
    CUT_FROM,
    FLOOR,
    FLOOR_OF_CLASSES,
    LARGEST,
    LONGEST,
    LONGEST_FROM,
    MOST_CUT,
    MOST_LONG,
    MOST_MARGINS,
    MOST_STEEP,
    REACH,
    SAFE,
    SKEW,
    STRETCH,
    in_range,
    limited,
)
from riata.solvers.whitened_errors import (
    covariance_of,
    gradient_errors,
    measured_sampling,
    steady_offset,
)
from riata.solvers.whitened_line import has_moments, keep_likely_part
from riata.solvers.whitened_part import keep_part_by_slopes
from riata.solvers.whitened_shares import CONSTANTS, strength_of
from riata.vectors import Vector


@dataclass
class Run:
    """One fit. A margin is <w, u> + offset, with u the row in the present coordinates.

    Attributes
    ----------
    scale, spread : float
        The typical size of slopes at the present model, and at the best constant.
    overfit : float
        How much better the model looks on its own rows, because it was fitted to their sampling
        errors: the inner product of both. By Stein's identity it is the errors' variance times how
        much of them was kept.
    widest : float
        That of slopes at first, on its large side if it is lost in noise.
    strength : float
        The number of rows for each column, times the strength of the guarantee.
    trace : float
        The mean squared length of u. Where eigenvalues were lifted it is less than their number.
    curvature : float
        The mean curvature of the loss.
    sampled : float
        The error of w that sampling rows makes, of rows that are independent.
    path : AveragedSteps or GradientRoot
        Where gradients led.
    sampling : ndarray
        A root of the covariance that sampling rows gives the gradient at w, if that was measured.
    deviation : float
        The standard deviation of an entry of the Jacobian in white coordinates.
    secant, secant_error : float
        The mean curvature of the risk on the way from the constant to the model, and its error.
    alone, base : ndarray, Vector
        What unpenalized columns explain of w alone, and their model; or 0, and the best constant.
    """

    plan: Plan
    problem: Problem
    curator: Curator
    whitening: Whitening = field(init=False)
    w: np.ndarray = field(init=False)
    offset: float = 0.0
    shift: float = 0.0
    kept: float = 1.0
    kept_error: float = 0.0
    shift_error: float = 0.0
    steep: float = 0.0
    offset_error: float | None = None
    secant: float = math.nan
    secant_error: float = math.inf
    odds: float = 1.0
    overfit: float = 0.0
    sampled: float = 0.0
    alone: np.ndarray | float = 0.0
    base: Vector = field(init=False)
    path: AveragedSteps | GradientRoot | None = None
    sampling: np.ndarray | None = None
    cut_along: float = CUT_ALONG

    #: Quantiles at which scales are taken that are lost in noise; the constant along the model; the
    #: root mean square of slopes at the constant, in units of `spread`.
    safe: ClassVar[float] = SAFE
    safe_for_rows: ClassVar[float] = 1 - SAFE
    along_constant: ClassVar[float] = 1.0
    usual_slope: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        self.units = self.problem.bounds.per_column(self.problem.n_features)
        self.strength = strength_of(self.plan, self.problem)

    def release(self, role: str, query: Query) -> tuple[Any, float]:
        """A release, and the standard deviation of its noise."""
        mechanism = self.plan[role]
        return self.curator.release(query, mechanism), noise_std(mechanism, query)

    @property
    def steepness(self) -> float:
        """The slope of the rarer class, which is not to be clipped, in units of the scale."""
        if self.problem.loss.link == "log":
            return SKEW
        return min(self.steep / self.scale, MOST_STEEP)

    # Scales.

    def begin(self) -> None:
        """Units of rows and slopes."""
        problem, p = self.problem, self.problem.n_features
        self.curvature = in_range(problem.loss.curvature_bound(problem.y_bound))
        self.constant = first_constant(problem)
        # Too large a unit of rows only makes coefficients small, and so does too small a one of
        # slopes: these are the safe sides.
        support = Support(np.arange(p), problem.bounds)
        rows = self._size("lengths", LengthSizes(problem, support), self.safe_for_rows)
        if problem.loss.classifies:
            self.scale = self.widest = in_range(problem.loss.slope_bound(0.0, problem.y_bound))
        else:
            query = SlopeSizes(problem, self.constant)
            self.scale, self.widest = self._sizes("slopes", query, (self.safe, 1 - SAFE))
        self.spread = self.scale
        self.whitening = Whitening.of(np.eye(p) / rows, np.zeros(p))
        self.length, self.trace = math.sqrt(2), 1.0
        self.w, self.ratios = np.zeros(p), np.ones(p)
        self.flat, self.unseen = np.zeros(p, dtype=bool), np.ones(p, dtype=bool)
        if problem.loss.measured_curvature:
            self.measured = MeasuredConstant(problem, self.constant, self.curvature)
            for _ in range(CONSTANTS if "constant" in self.plan.times else 0):
                self._measure_constant()
            self._take_constant()

    def _measure_constant(self) -> None:
        """Move to the best constant, and find the curvature and the scale of the slopes there."""

        def released(query: Query) -> tuple[float, float]:
            found, noise = self.release("constant", query)
            return float(found[0]), noise

        self.measured.measure(self.widest, released)
        query = SlopeSizes(self.problem, self.measured.model)
        self.scale, self.widest = self._sizes("slopes", query, (SAFE, 1 - SAFE))
        self.spread = self.scale

    def _take_constant(self) -> None:
        """Go on from the constant that was measured."""
        self.constant, self.constant_error = self.measured.model, self.measured.error
        self.curvature, self.offset = in_range(self.measured.curvature), self.constant.offset

    def _size(self, role: str, query: Sizes, safe: float) -> float:
        return self._sizes(role, query, (safe,))[0]

    def _sizes(self, role: str, query: Sizes, safe: tuple[float, ...]) -> list[float]:
        """A scale, on several sides of where it may be if it is lost in noise."""
        counts, noise = self.release(role, query)
        unit, scale = STRETCH * query.top, high_length if role == "lengths" else high_quantile
        return [in_range(unit * scale(counts, noise, query.edges, q)) for q in safe]

    # Rounds.

    def whiten(self, role: str) -> None:
        """Release the joint second moment, take a Newton step, and go to whitened coordinates."""
        fits_offset, p = self.problem.fit_intercept, self.problem.n_features
        constant = CONSTANT * self.length if fits_offset else 0.0
        limit = self.scale * self.length * (MOST_BEFORE / X_STEPS)
        theta = self.model(self.w, self.offset)
        query = JointMoments(
            self.problem, theta, limit, self.whitening, self.scale, self.length, constant
        )
        matrix, noise = self.release(role, query)
        noise /= math.sqrt(2)  # off the diagonal
        means = matrix[: p + 1, -1] / constant if constant else np.zeros(p + 1)
        spread = matrix[: p + 1, : p + 1] - np.outer(means, means)
        raw, vectors = np.linalg.eigh(spread[:p, :p])
        floor = (FLOOR_OF_CLASSES if self.problem.loss.classifies else FLOOR) * 2 * math.sqrt(p)
        lifted = np.maximum(raw, max(floor * noise, 1e-12))
        turn = vectors.T / np.sqrt(lifted)[:, None]
        # What is left of the slopes after the step, in units of their scale.
        of_slopes = max(float(spread[p, p]), 2 * noise)
        cross = turn @ spread[:p, p]
        split = Split.of(self.problem, turn @ self.whitening.matrix)
        step = split.shrunken(cross, noise / np.sqrt(lifted), of_slopes)
        left = of_slopes - 2 * cross @ step + np.square(step) @ (raw / lifted)
        left = min(max(float(left), 2 * noise, 1e-6 * of_slopes), of_slopes)
        if role == "moments 1":
            self._find_constant(float(means[p]), noise / (constant or 1.0), of_slopes)
        elif fits_offset:
            self.offset += self._shift_of_round(float(means[p]), noise / constant)
        self.offset += float(self.w @ means[:p])
        turned = np.sqrt(lifted) * (vectors.T @ self.w)
        self.w = limited(turned - self.scale / self.curvature * step)
        old = self.whitening
        self.whitening = Whitening.of(turn @ old.matrix, turn @ (old.centre + means[:p]))
        self.scale = in_range(self.scale * math.sqrt(left))
        self.ratios = np.clip(raw / lifted, 0.0, 1.0)
        self.flat = lost_in_noise(raw, noise)
        # What an earlier round saw is there, however small noise makes it look now.
        self.unseen = self.flat & (np.square(vectors[self.unseen]).sum(axis=0) > FLAT_PART)
        self.deviation = noise * float(np.mean(1 / lifted))
        self.trace = max(float((raw / lifted).sum()), 1.0)
        longest = min(max(LONGEST, self.strength / LONGEST_FROM), MOST_LONG)
        self.length = math.hypot(longest * math.sqrt(self.trace + 1), self.steepness)

    def _find_constant(self, mean: float, noise: float, of_slopes: float) -> None:
        """The best constant, from the mean slope at 0, and the curvature there."""
        problem, bound = self.problem, self.problem.offset_bound
        measured = problem.loss.measured_curvature and not problem.loss.classifies
        if measured and problem.fit_intercept:
            self.measured.see(self.scale * mean, self.scale * noise)
            self._take_constant()
        elif not measured:
            mean, noise = posterior(mean, noise, CENTRED)
            self.constant_error = self.scale / self.curvature * noise
            if problem.loss.classifies:
                self.offset, curvature = best_constant(problem.loss, self.scale * mean, bound)
                self.curvature = in_range(curvature)
                targets = np.array(problem.loss.class_targets())
                slopes = np.abs(problem.loss.slope(np.full(2, self.offset), targets))
                self.steep = float(slopes.max())
            else:
                offset = self.offset - self.scale * mean / self.curvature
                self.offset = float(np.clip(offset, -bound, bound))
            self.constant = self.constant.with_offset(self.offset)
        self.spread = in_range(self.scale * math.sqrt(of_slopes))

    def _shift_of_round(self, mean: float, noise: float) -> float:
        """How far up the intercept goes in a later round."""
        if not self.problem.loss.measured_curvature:
            return -self.scale * mean / self.curvature
        mean, noise = self.scale * mean, self.scale * noise
        error = math.hypot(self.constant_error, math.sqrt(self.explained))
        return likely_shift(self.problem.loss, mean, noise, self.curvature, error)[0]

    def model(self, w: np.ndarray, offset: float) -> Vector:
        """The model of the rows as they are."""
        offset = float(np.clip(offset - w @ self.whitening.centre, -LARGEST, LARGEST))
        return Vector.of(limited(self.whitening.matrix.T @ w) / self.units).with_offset(offset)

    # Gradients.

    def descend(self, callback: Callback | None) -> None:
        """Newton steps with the identity for the curvature; the last ones are averaged."""
        problem, classifies = self.problem, self.problem.loss.classifies
        steps, first = self.plan.steps, self.plan.times.get("first", 0)
        typical = math.sqrt(self.trace + 1)
        constant = max(1.0, CONSTANT * typical) if problem.fit_intercept else 0.0
        cut = max(min(max(CUT, self.strength / CUT_FROM), MOST_CUT), self.steepness, self.least_cut)
        clip = cut * self.scale * math.hypot(math.sqrt(self.trace), constant)
        limit = clip / constant if constant else math.inf
        if classifies:  # the variance of slopes is the mean curvature, as in every likelihood
            self.curvature = in_range(self.curvature * min(1.0, self.scale / self.spread) ** 2)
        point = np.append(self.w, self.offset) if constant else self.w
        path = self.path = path_of(
            problem.loss, self.curvature, self.deviation, first, steps, constant
        )
        q = len(self.w)
        for t in count_steps(steps, callback):
            offset = float(point[-1]) if constant else self.offset
            query = PreconditionedGradient(
                self.problem, self.model(point[:q], offset), limit, self.whitening,
                REACH * typical, constant, clip,
            )  # fmt: skip
            if t == 1 and "errors" in self.plan.times:
                self.sampling, farther = measured_sampling(self, query, cut)
                clip, limit = farther * clip, farther * limit
                query = replace(query, clip=clip, limit=limit)
            gradient, noise = self.release("first" if t <= first else "gradient", query)
            point = path.advance(point, gradient, noise)
            self.after_step(t, point[:q], float(point[-1]) if constant else self.offset)
        self.w, self.offset = path.found[:q], float(path.found[-1]) if constant else 0.0
        self.most = MOST_MARGINS if classifies else self.explained
        noise, self.sampled = gradient_errors(self, path, cut)
        self.error = math.hypot(noise, self.sampled)
        split = Split.of(problem, self.whitening.matrix)
        w, self.columns = split.likely_columns(self.w, self.error, self.most)
        w, self.alone = split.shrunken(w, np.full(len(w), self.error), self.most), split.alone(w)
        free = min(int(self.columns[split.penalized].sum()), len(w))
        kept, found = w - self.alone, self.w - self.alone
        self.overfit = (
            free * self.sampled**2 * float(kept @ found) / max(float(found @ found), 1e-300)
        )
        self.w = w
        self.offset_error = self.error / constant if constant else None
        steady_offset(self)

    def after_step(self, t: int, w: np.ndarray, offset: float) -> None:
        """What else is fitted between two gradients: nothing here."""

    @property
    def least_cut(self) -> float:
        """Summands of gradients keep at least this multiple of their typical length."""
        return 0.0

    @property
    def explained(self) -> float:
        """The variance of margins that explain all slopes; of logarithms, as if log-normal."""
        found = in_range(self.spread / self.curvature) ** 2
        return math.log1p(found) if self.problem.loss.link == "log" else found

    def first_end(self) -> tuple[Problem, Vector]:
        """Where the line along the model begins, and of which problem."""
        if not self.problem.unpenalized:
            return self.problem, self.constant
        return self.problem, self.model(np.asarray(self.alone), self.offset)

    def shrink(self) -> None:
        """Go from the base towards the model as far as two releases say, and mend the offset.

        Along one line the noise does not grow with the number of columns.
        """
        keep = keep_likely_part if has_moments(self) else keep_part_by_slopes
        keep(self)

    def solution(self) -> Solution:
        """The model, its errors, and a private estimate of its fit."""
        problem, theta = self.problem, self.model(self.w, self.offset)
        offset = (1 - self.kept) * self.base.offset + self.kept * theta.offset + self.shift
        offset = float(np.clip(offset, -LARGEST, LARGEST))
        dense = (1 - self.kept) * self.base.dense() + self.kept * theta.dense()
        dense, offset = self._inside(np.where(self.columns, dense, 0.0), offset)
        model = Vector.of(dense).with_offset(offset if problem.fit_intercept else 0.0)
        covariance = covariance_of(self, theta, model.support)
        return Solution(
            model, self.plan.steps, errors=known_errors(covariance)[:-1], fit=self.fit_of(model),
            offset_error=math.sqrt(covariance[0, -1, -1]) if problem.fit_intercept else None,
            covariance=covariance,
        )  # fmt: skip

    def _inside(self, dense: np.ndarray, offset: float) -> tuple[np.ndarray, float]:
        """A model of the set near to this one, with the same prediction at the mean row.

        Where rows hardly vary a model is noise. It may be so long that a projection would leave
        nothing of the rest, so this part is made as short as it can be, which changes predictions
        by little but a constant.
        """
        if np.array_equal(inside := self.problem.project(dense), dense):
            return inside, offset
        white = self.whitening
        ways = limited(np.where(self.columns, white.matrix[self.flat] / self.units, 0.0)).T
        inside = self.problem.project(dense - ways @ np.linalg.lstsq(ways, dense)[0])
        mean = np.linalg.lstsq(white.matrix, white.centre)[0] * self.units
        return inside, float(np.clip(offset + mean @ (dense - inside), -LARGEST, LARGEST))

    def fit_of(self, model: Vector) -> Fit | None:
        """A private estimate of how much better than the best constant a model fits the rows."""
        problem = self.problem
        curvature = self.curvature if problem.loss.measured_curvature else None
        query = comparison(problem, model, self.constant, 2 * self.spread, curvature)
        return read_comparison(*self.release("check", query))[0]
