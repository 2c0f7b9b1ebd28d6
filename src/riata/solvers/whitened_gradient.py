"""Gradients in coordinates that private second moments have made uncorrelated.

A few rounds release the joint second moment of the rows and of the slopes of the loss; each round
whitens the rows for the next one and takes a Newton step. Clipped gradients in the whitened space
then find the model, which is shrunk by what the noise is known to be. The proofs are in
docs/privacy/whitened_gradient.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from riata.curator import Curator
from riata.mechanisms import GaussianMechanism, Mechanism
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.queries import (
    Improvement,
    JointMoments,
    LengthSizes,
    PreconditionedGradient,
    Query,
    SlopeSizes,
    Support,
    Whitening,
)
from riata.queries.whitening import MOST_BEFORE, MOST_COORDINATES
from riata.grid import X_STEPS
from riata.solvers import defaults
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.plan import (
    Callback,
    Plan,
    Solution,
    Solver,
    calibrate_mechanisms,
    check_steps,
    count_steps,
)
from riata.solvers.refit import read_comparison
from riata.solvers.requirements import (
    bounded_curvature,
    columns_at_most,
    positive_delta,
    refittable_set,
)
from riata.vectors import Vector

STEPS = 12
LINE_CUT, GOOD, SKEW, LINE = 2.0, 0.3, 0.1, 20.0
QUIET_BINS, WINDOW, FILLED, LOW = 0.02, 4, 0.15, 0.05
OFFSET = 0.5
HIST = 24.0
FIRST_PART = 0.5
SHARES = {"lengths": 0.015, "slopes": 0.015, "moments": 0.35, "first": 0.12, "gradient": 0.485, "check": 0.015, "line": 0.06}
QUANTILE, STRETCH = 0.9, 1.2
CONSTANT = 0.5
TOP = 1.5
CUT = 1.5
FLOOR = 0.7
REACH = 8.0
RATE, RATE_OF_CLASSES = 1.0, 0.7
LARGEST_MARGINS = 16.0
VARIANCES, NULL = 16, 0.5
ROUNDS = ((30.0, 4), (10.0, 3), (3.0, 2), (0.0, 1))


@dataclass(frozen=True)
class WhitenedGradient(Solver):
    name = "whitened-gradient"
    radius_policy: ClassVar[str] = "open"
    requirements = (
        positive_delta('solver="sufficient-statistics"'),
        refittable_set,
        bounded_curvature,
        columns_at_most(
            MOST_COORDINATES, f"it whitens at most {MOST_COORDINATES:,} of them exactly",
            'Use solver="scaled-gradient" or "greedy"',
        ),
    )  # fmt: skip

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps) or STEPS

        def alone(strength: float) -> dict[str, Mechanism]:
            return {"whole": GaussianMechanism(1 / strength)}

        whole = calibrate_mechanisms(alone, fits, budget)["whole"]
        assert isinstance(whole, GaussianMechanism)
        strength = problem.n_rows / whole.noise_multiplier
        parts = shares(problem, steps, strength)
        times = {role: count for role, (count, _) in parts.items()}
        total = sum(share for _, share in parts.values())

        def at(strength: float) -> dict[str, Mechanism]:
            return {
                role: GaussianMechanism(math.sqrt(count * total / share) / strength)
                for role, (count, share) in parts.items()
            }

        mechanisms = calibrate_mechanisms(at, {role: fits * k for role, k in times.items()}, budget)
        of_zero = float(problem.loss.value(np.zeros(1), np.array([problem.y_bound]))[0])
        return Plan(
            self.name, problem, budget, steps, mechanisms, fits,
            min(of_zero, problem.worst_excess_risk),
            assumes="the shrinkage of the model does not err", times=times,
        )  # fmt: skip

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        run = Run(plan, problem, curator)
        run.begin()
        for role in plan.mechanisms:
            if role.startswith("moments"):
                run.whiten(role)
        run.descend(callback)
        run.rescale()
        return run.solution()


def rounds(strength: float) -> int:
    return next(count for least, count in ROUNDS if strength >= least)


def shares(problem: Problem, steps: int, strength: float) -> dict[str, tuple[int, float]]:
    first = int(FIRST_PART * steps)
    n_rounds = rounds(strength / problem.n_features)
    of_scale = float(np.clip((HIST / strength) ** 2, 0.005, 0.1))
    found = {"lengths": (1, of_scale)}
    if not problem.loss.classifies:
        found["slopes"] = (1, of_scale)
    for k in range(n_rounds):
        found[f"moments {k + 1}"] = (1, SHARES["moments"] * 2**k / (2**n_rounds - 1))
    if first:
        found["first"] = (first, SHARES["first"])
    found["gradient"] = (steps - first, SHARES["gradient"])
    found["line"] = (2, float(np.clip((LINE / strength) ** 2, 0.04, 0.15)))
    found["check"] = (1, SHARES["check"])
    return found


@dataclass
class Run:
    plan: Plan
    problem: Problem
    curator: Curator

    def __post_init__(self) -> None:
        p = self.problem.n_features
        self.units = self.problem.bounds.per_column(p)
        self.w, self.offset = np.zeros(p), 0.0
        self.curvature = self.problem.loss.curvature_bound(self.problem.y_bound)

    def release(self, role: str, query: Query) -> tuple[Any, float]:
        mechanism = self.plan[role]
        return self.curator.release(query, mechanism), noise_std(mechanism, query)

    def begin(self) -> None:
        problem = self.problem
        p = problem.n_features
        support = Support(np.arange(p), problem.bounds)
        lengths = self._size("lengths", LengthSizes(problem, support), 1 - LOW)
        if problem.loss.classifies:
            self.scale = problem.loss.slope_bound(0.0, problem.y_bound)
        else:
            self.scale = STRETCH * self._size("slopes", SlopeSizes(problem, Vector.zero(p)), LOW)
        self.first_scale = self.scale
        self.whitening = Whitening.of(np.eye(p) / (STRETCH * lengths), np.zeros(p))
        self.length = math.sqrt(2)
        self.trace = 1.0
        self.constant = Vector.zero(p)
        self.spread = 1.0

    def _size(self, role: str, query: Any, safe: float) -> float:
        counts, noise = self.release(role, query)
        return float(query.top * quantile(counts, noise, query.edges, safe))

    @property
    def theta(self) -> Vector:
        return self.model(self.w, self.offset)

    def model(self, w: np.ndarray, offset: float) -> Vector:
        coefficients = self.whitening.matrix.T @ w / self.units
        bound = 1e3 * self.problem.offset_bound
        offset = float(np.clip(offset - w @ self.whitening.centre, -bound, bound))
        return Vector.of(coefficients).with_offset(offset)

    def whiten(self, role: str) -> None:
        problem = self.problem
        constant = CONSTANT * self.length if problem.fit_intercept else 0.0
        limit = self.scale * self.length * (MOST_BEFORE / X_STEPS)
        query = JointMoments(
            problem, self.theta, limit, self.whitening, self.scale, self.length, constant
        )
        matrix, noise = self.release(role, query)
        noise /= math.sqrt(2)
        p = self.whitening.size
        means = matrix[: p + 1, -1] / constant if constant else np.zeros(p + 1)
        spread = matrix[: p + 1, : p + 1] - np.outer(means, means)
        raw, vectors = np.linalg.eigh(spread[:p, :p])
        floor = max(FLOOR * math.sqrt(2 * p) * noise, 1e-12)
        values = np.maximum(raw, floor)
        turn = vectors.T / np.sqrt(values)[:, None]
        self.ratios = np.clip(raw / values, 0.0, 1.0)
        self.trace = max(float((raw / values).sum()), 1.0)
        # The Newton step, in the new coordinates and in units of the slopes' scale.
        cross = turn @ spread[:p, p]
        of_slopes = max(float(spread[p, p]), 2 * noise)
        found = shrunken(cross, noise / np.sqrt(values), of_slopes)
        left = of_slopes - 2 * cross @ found + np.square(found) @ (raw / values)
        left = min(max(left, 2 * noise, 1e-6 * of_slopes), of_slopes)
        if role == "moments 1":
            self._first_constant(means, of_slopes)
            if constant:
                self.constant_noise = self.scale / self.curvature * noise / constant
        elif problem.fit_intercept:
            self.offset -= self.scale * means[p] / self.curvature
        before = self.whitening
        # margins: w u + offset = w turn^-1 u' + w means + offset
        old = np.sqrt(values) * (vectors.T @ self.w)
        self.offset += float(self.w @ means[:p])
        self.w = old - self.scale / self.curvature * found
        self.whitening = Whitening.of(
            turn @ before.matrix, turn @ (before.centre + means[:p])
        )
        self.scale *= math.sqrt(left)
        self.length = TOP * math.sqrt(self.trace + 1)

    def _first_constant(self, means: np.ndarray, of_slopes: float) -> None:
        problem, loss = self.problem, self.problem.loss
        bound = problem.offset_bound
        slope = self.scale * float(means[-1])
        if loss.classifies:
            self.offset, self.curvature = best_constant(loss, slope, bound)
        elif problem.fit_intercept:
            self.offset = float(np.clip(-slope / self.curvature, -bound, bound))
        self.constant = Vector.zero(problem.n_features).with_offset(self.offset)
        self.spread = self.scale * math.sqrt(of_slopes)

    def descend(self, callback: Callback | None) -> None:
        problem, steps = self.problem, self.plan.steps
        size = math.sqrt(self.trace + 1)
        constant = max(1.0, CONSTANT * size) if problem.fit_intercept else 0.0
        clip = CUT * self.scale * math.hypot(math.sqrt(self.trace), constant)
        limit = clip / max(constant, 1e-3)
        curvature = self.curvature
        rate = RATE
        if problem.loss.classifies:
            curvature *= min(1.0, (self.scale / self.spread) ** 2)
            rate = RATE_OF_CLASSES
        first = self.plan.times.get("first", 0)
        w, offset, average = self.w, self.offset, np.zeros(len(self.w) + 1)
        for t in count_steps(steps, callback):
            query = PreconditionedGradient(
                problem, self.model(w, offset), limit, self.whitening, REACH * size, constant, clip
            )
            gradient, noise = self.release("first" if t <= first else "gradient", query)
            w = w - rate * gradient[: len(w)] / curvature
            if constant:
                offset -= rate * float(gradient[-1]) / (curvature * constant)
            if t > first:
                average += np.append(w, offset) / (steps - first)
        noise /= curvature * math.sqrt(steps - first)
        if problem.loss.classifies:
            largest = LARGEST_MARGINS
        else:
            largest = (self.spread / self.curvature) ** 2
        self.largest = largest
        self.w = shrunken(average[:-1], np.full(len(w), noise), largest)
        self.now_curvature = curvature
        self.offset = float(average[-1]) if constant else 0.0
        self.noise = math.hypot(noise, self.scale / self.curvature / math.sqrt(problem.n_rows))
        self.offset_noise = self.noise / constant if constant else None

    def rescale(self) -> None:
        """Move along the model found, and the offset, by what two more gradients say."""
        problem = self.problem
        spread = math.sqrt(float(self.ratios @ np.square(self.w)))
        spread = max(min(spread, math.sqrt(self.largest)), 1e-9 * math.sqrt(self.largest))
        direction = self.w / spread
        line = Whitening.of(
            (direction @ self.whitening.matrix)[None], np.array([direction @ self.whitening.centre])
        )
        constant, self.shift = (1.0 if problem.fit_intercept else 0.0), 0.0
        found, noises = [], []
        for model, size in ((self.constant, self.spread), (self.theta, self.scale)):
            clip = LINE_CUT * size * math.hypot(1.0, constant)
            limit = clip / max(constant, 1e-3)
            query = PreconditionedGradient(
                problem, model, limit, line, REACH, constant, clip
            )
            gradient, noise = self.release("line", query)
            found.append(gradient)
            noises.append(noise)
        curvature = self.now_curvature
        change = float(found[1][0] - found[0][0])
        if change < 3 * math.hypot(*noises):
            change = max(change, curvature * spread)
        part = kept(-float(found[0][0]) / change, noises[0] / change)
        if constant:
            slope = (1 - part) * found[0][1] + part * found[1][1]
            noise = math.hypot((1 - part) * noises[0], part * noises[1]) / (curvature * constant)
            prior = ((1 - part) * self.constant_noise) ** 2 + (part * self.offset_noise) ** 2
            prior += (SKEW * self.scale / curvature) ** 2
            bound = problem.offset_bound
            move = -float(slope) / (curvature * constant) * prior / (prior + noise**2)
            left = 1 / (1 / prior + 1 / noise**2)
            largest = (OFFSET * self.first_scale / curvature) ** 2
            shrink = 1.0 if problem.loss.classifies else largest / (largest + left)
            flat = self.constant.offset
            self.shift = shrink * (flat + move) - flat
        self.part = part

    def solution(self) -> Solution:
        problem = self.problem
        theta = self.theta
        projected = problem.set.project(self.part * theta.dense())
        offset = (1 - self.part) * self.constant.offset + self.part * theta.offset + self.shift
        model = Vector.of(projected).with_offset(offset)
        high = 2 * self.spread
        most = defaults.CHECK_CUT * max(
            high**2 / (2 * self.curvature), high if problem.loss.classifies else 0.0
        )
        released, noise = self.release("check", Improvement(problem, model, self.constant, most))
        fit, _ = read_comparison(released, noise)
        errors = self.noise * np.sqrt(np.square(self.whitening.matrix).sum(axis=0)) / self.units
        return Solution(
            model, self.plan.steps, errors=errors[model.support], offset_error=self.offset_noise,
            fit=fit,
        )  # fmt: skip


def kept(part: float, noise: float) -> float:
    """How much of a model to keep, by a noisy estimate: the mean if it is null, or about 1."""
    good, null = noise**2 + GOOD**2, noise**2
    odds = math.exp(min((part**2 / null - (part - 1) ** 2 / good) / 2, 50.0)) * math.sqrt(null / good)
    chance = odds / (odds + 1)
    return chance * max((part * GOOD**2 + null) / good, 0.0)


def best_constant(loss: Any, slope: float, bound: float) -> tuple[float, float]:
    targets = np.array(loss.class_targets())
    positive, negative = loss.slope(np.zeros(2), targets)
    part = float(np.clip((slope - negative) / (positive - negative), 1e-3, 1 - 1e-3))
    parts = np.array([part, 1 - part])
    low, high = -bound, bound
    for _ in range(60):
        middle = (low + high) / 2
        if parts @ loss.slope(np.full(2, middle), targets) > 0:
            high = middle
        else:
            low = middle
    middle = (low + high) / 2
    return middle, float(parts @ loss.curvature(np.full(2, middle), targets))


def quantile(counts: np.ndarray, noise: float, edges: np.ndarray, safe: float) -> float:
    q = QUANTILE
    if noise < QUIET_BINS:
        shares = np.where(counts > defaults.VISIBLE * noise, counts, 0.0)
    else:
        # Where would four neighbouring bins with most of the rows be? Rather too low.
        sums = np.convolve(counts, np.ones(WINDOW))[: len(counts)]
        fits = (FILLED * sums - WINDOW * FILLED**2 / 2) / noise**2
        shares, q = np.exp(fits - fits.max()), safe
    if not shares.sum():
        return 1.0
    below = np.cumsum(shares) / shares.sum()
    k = max(int(np.searchsorted(below, q - 1e-12)), 1)
    return float(edges[min(k, len(edges) - 1)])


def shrunken(values: np.ndarray, noise: np.ndarray, largest: float) -> np.ndarray:
    variances = largest / len(values) * 2.0 ** -np.arange(VARIANCES)
    whole = variances[:, None] + np.square(noise)
    fits = -0.5 * (np.log(whole) + np.square(values) / whole).sum(axis=1)
    null = -0.5 * (np.log(np.square(noise)) + np.square(values / noise)).sum()
    fits += math.log((1 - NULL) / (NULL * VARIANCES))
    most = max(fits.max(), null)
    odds = np.exp(fits - most)
    chances = odds / (odds.sum() + math.exp(null - most))
    return values * (chances @ (variances[:, None] / whole))
