"""What solvers for all classes at once share: frequencies, and a line through the margins.

The line is one scale and an offset for each class. It makes probabilities of the margins and is
what keeps a model of noise from harm: its scale is then about 0, and the model that of the class
frequencies.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from riata.curator import Curator
from riata.losses import Weighted
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.queries import Influence, MarginLengths, SoftmaxLine
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.calibrated import gaussian_mechanisms
from riata.solvers.constant_share import constant_share
from riata.solvers.empirical_bayes import signal_part
from riata.solvers.plan import Plan, Solver
from riata.solvers.scales import AnyCurator, released_scale
from riata.solvers.solution import Callback, Solution
from riata.solvers.step_count import zero_risk
from riata.solvers.whitened_shares import strength_of
from riata.vectors import Vector

# The numbers below were set with the scores of texts of four and ten classes, of digits, of the
# cuts of diamonds and of a synthetic mixture in view, with true and with shuffled labels, by a
# prototype and by benchmarks/classes.py.

#: The steps of the line, and how many of the last ones are averaged.
LINE_STEPS, AVERAGED = 6, 4

#: Margins are clipped at this quantile of their lengths, or at so many times their usual length.
CUT_QUANTILE, CUT_OF_USUAL = 0.9, 1.5

#: A step of the scale is no longer than twice the scale or this, in units of the cut.
LONGEST_STEP = 5.0

#: The offsets are about this far from the logarithms of the class frequencies.
OFFSETS = 0.5

#: The scale is shrunk by the square of this many standard errors over it, but to no less than a
#: part: the most likely class is then still that of the margins, if the classes are alike.
SHRUNK, LEAST = 2.0, 0.1

#: The curvature in the scale is about this much and differs by about so much: it is the mean
#: variance of a softmax's margins, whose largest squared length is 1.
USUAL, UNUSUAL = 0.15, 0.1

#: A scale below so many standard errors is one of noise: margins at the cut are then no longer than
#: this, which costs .005 nats if there is nothing behind them.
SEEN, HARMLESS = 2.0, 0.2

#: Class counts count as different where their variance exceeds that of the noise so many times.
DIFFERENT = 2.0


class JointSolver(Solver):
    """A solver that fits the models of all classes together, from releases for all of them."""

    joint: ClassVar[bool] = True

    @abstractmethod
    def run_classes(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None
    ) -> tuple[Solution, ...]:
        """The model of each class."""

    def run_all(
        self,
        plan: Plan,
        problems: tuple[Problem, ...],
        curator: Curator,
        callback: Callback | None = None,
    ) -> tuple[Solution, ...]:
        (problem,) = problems
        return self.run_classes(plan, problem, curator, callback)

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """The model of the first class; `run_all` has them all."""
        return self.run_classes(plan, problem, curator, callback)[0]


def joint_plan(
    solver: Solver,
    problem: Problem,
    budget: Budget,
    steps: int,
    shares: dict[str, float],
    times: dict[str, int],
) -> Plan:
    """A plan of Gaussian releases, each kind with its share of the sum of 1 / multiplier^2."""
    mechanisms = gaussian_mechanisms(times, shares, budget)
    return Plan(
        solver.name, problem, budget, steps, mechanisms, 1,
        zero_risk(problem), assumes="the scale of the margins is found", times=times,
    )  # fmt: skip


def counted(plan: Plan, least: float) -> float:
    """The constant beside a row that counts the rows of classes, as a part of the longest row.

    It is at least `least`, and longer where noise would hide the counts.
    """
    strength = strength_of(plan, plan.problem) * plan.problem.n_features
    share = constant_share(strength, least**2 / (1 + least**2))
    return math.sqrt(share / (1 - share))


def class_shares(counts: np.ndarray, noise: float) -> np.ndarray:
    """The part of the rows in each class, from noisy counts: alike where noise explains them."""
    middle = float(counts.mean())
    shown = float(np.square(counts - middle).sum()) / (len(counts) - 1)
    variance = max(shown - DIFFERENT * noise**2, 0.0)
    kept = variance / (variance + noise**2) if variance else 0.0
    found = np.maximum(middle + kept * (counts - middle), max(noise / 2, 1.0))
    shares: np.ndarray = found / found.sum()
    return shares


def log_priors(problem: Problem, shares: np.ndarray) -> np.ndarray:
    """The best offsets of a model without columns: 0 if there is no intercept."""
    if not problem.fit_intercept:
        return np.zeros(len(shares))
    loss = problem.loss
    weighted = shares * (loss.weights if isinstance(loss, Weighted) else 1.0)
    logs = np.log(weighted / weighted.sum())
    bound = problem.offset_bound
    return np.clip(logs - logs.mean(), -bound, bound)


class _Line(NamedTuple):
    """A scale, in units of the cut, its standard error, and the offsets."""

    scale: float
    error: float
    offsets: np.ndarray


def calibrated(
    plan: Plan,
    problem: Problem,
    curator: AnyCurator,
    thetas: tuple[Vector, ...],
    priors: np.ndarray,
    influence: Influence,
    usual: float,
) -> tuple[Solution, ...]:
    """The models times one scale, with offsets, so that the softmax of margins is probable.

    Releases: the lengths of the margins for a cut ("lengths"), and the line's gradients ("line").
    Where noise hides the lengths they are taken to be `usual`.
    """
    lengths = released_scale(MarginLengths(problem, thetas), plan["lengths"], curator)
    seen = lengths.shares[1:].any()
    cut = lengths.quantile(CUT_QUANTILE, zeros=False) if seen else CUT_OF_USUAL * max(usual, 1e-300)
    line = _fitted(plan, problem, curator, thetas, priors, influence, cut)
    found = max(line.scale, line.error)
    kept = max(1 - (SHRUNK * line.error / found) ** 2, LEAST)
    scale, bound = kept * found, problem.offset_bound
    scale = (scale if line.scale > SEEN * line.error else min(scale, HARMLESS)) / cut
    offsets = priors + kept * (line.offsets - line.offsets.mean() - priors)
    return tuple(
        Solution(
            Vector.of(problem.set.project(scale * theta.dense())).with_offset(
                scale * theta.offset + float(np.clip(offset, -bound, bound))
            ),
            plan.steps,
        )
        for theta, offset in zip(thetas, offsets, strict=True)
    )


def _curvature(mean: float, noise: float, count: int) -> float:
    """The curvature in the scale, from the mean of `count` noisy ones and what is usual.

    Where it is underestimated one step leads to a scale at which there is no curvature, and none
    leads back.
    """
    part = signal_part(UNUSUAL, noise / math.sqrt(count))
    return max(USUAL + part * (mean - USUAL), (1 - part) * USUAL, 1e-3 * USUAL)


def _fitted(
    plan: Plan,
    problem: Problem,
    curator: AnyCurator,
    thetas: tuple[Vector, ...],
    priors: np.ndarray,
    influence: Influence,
    cut: float,
) -> _Line:
    """Newton steps in the scale, and steps of the offsets that noise pulls back to the priors."""
    mechanism, chances = plan["line"], np.exp(priors) / np.exp(priors).sum()
    at_priors, scale, offsets = chances * (1 - chances), 0.0, priors
    scales, all_offsets, curvatures, curvature, noise = [], [], [], 0.0, 0.0
    for t in range(1, LINE_STEPS + 1):
        query = SoftmaxLine(problem, thetas, influence, cut, scale, offsets)
        found, noise = curator.release(query, mechanism), noise_std(mechanism, query)
        curvatures.append(float(found[-1]))
        curvature = _curvature(float(np.mean(curvatures[-AVERAGED:])), noise, min(t, AVERAGED))
        longest = max(2 * scale, LONGEST_STEP)
        target = scale - float(np.clip(found[0] / curvature, -longest, longest))
        scale = max(target, 0.0)
        if problem.fit_intercept:
            pulled = OFFSETS**2 / (OFFSETS**2 + (2 * noise / at_priors) ** 2)
            offsets = priors + pulled * (offsets - found[1:-1] / at_priors - priors)
        scales.append(target)
        all_offsets.append(offsets)
    last = slice(-AVERAGED, None)
    error = noise / curvature / math.sqrt(AVERAGED)
    return _Line(float(np.mean(scales[last])), error, np.mean(all_offsets[last], axis=0))
