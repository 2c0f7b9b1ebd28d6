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
FIRST_PART = 0.5
SHARES = {"lengths": 0.015, "slopes": 0.015, "moments": 0.35, "first": 0.12, "gradient": 0.485, "check": 0.015}
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
        n_rounds = rounds(problem.n_rows / whole.noise_multiplier / problem.n_features)
        parts = shares(problem, steps, n_rounds)
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
        return run.solution()


def rounds(strength: float) -> int:
    return next(count for least, count in ROUNDS if strength >= least)


def shares(problem: Problem, steps: int, n_rounds: int) -> dict[str, tuple[int, float]]:
    first = int(FIRST_PART * steps)
    found = {"lengths": (1, SHARES["lengths"])}
    if not problem.loss.classifies:
        found["slopes"] = (1, SHARES["slopes"])
    for k in range(n_rounds):
        found[f"moments {k + 1}"] = (1, SHARES["moments"] * 2**k / (2**n_rounds - 1))
    if first:
        found["first"] = (first, SHARES["first"])
    found["gradient"] = (steps - first, SHARES["gradient"])
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
        lengths = self._size("lengths", LengthSizes(problem, support))
        if problem.loss.classifies:
            self.scale = problem.loss.slope_bound(0.0, problem.y_bound)
        else:
            self.scale = STRETCH * self._size("slopes", SlopeSizes(problem, Vector.zero(p)))
        self.whitening = Whitening.of(np.eye(p) / (STRETCH * lengths), np.zeros(p))
        self.length = math.sqrt(2)
        self.trace = 1.0
        self.constant = Vector.zero(p)
        self.spread = 1.0

    def _size(self, role: str, query: Any) -> float:
        counts, noise = self.release(role, query)
        return float(query.top * quantile(counts, noise, query.edges, QUANTILE))

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
        self.trace = max(float((raw / values).sum()), 1.0)
        # The Newton step, in the new coordinates and in units of the slopes' scale.
        cross = turn @ spread[:p, p]
        of_slopes = max(float(spread[p, p]), 2 * noise)
        found = shrunken(cross, noise / np.sqrt(values), of_slopes)
        left = of_slopes - 2 * cross @ found + np.square(found) @ (raw / values)
        left = min(max(left, 2 * noise, 1e-6 * of_slopes), of_slopes)
        if role == "moments 1":
            self._first_constant(means, of_slopes)
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
        self.w = shrunken(average[:-1], np.full(len(w), noise), largest)
        self.offset = float(average[-1]) if constant else 0.0
        self.noise = math.hypot(noise, self.scale / self.curvature / math.sqrt(problem.n_rows))
        self.offset_noise = self.noise / constant if constant else None

    def solution(self) -> Solution:
        problem = self.problem
        theta = self.theta
        projected = problem.set.project(theta.dense())
        model = Vector.of(projected).with_offset(theta.offset)
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


def quantile(counts: np.ndarray, noise: float, edges: np.ndarray, q: float) -> float:
    sure = counts > defaults.VISIBLE * noise
    shares = np.where(sure, counts, 0.0) if sure.any() else (counts == counts.max()) * 1.0
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
