"""Bounds on the excess risk that hold with high probability, from the noise of each solver.

The proofs are in docs/privacy/frank_wolfe.md and docs/algorithms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from riata.embedding import margin_distortion


class Tail(ABC):
    """What the excess risk exceeds rarely."""

    @abstractmethod
    def bound(self, failure: float) -> float:
        """A number that the excess risk exceeds with probability at most `failure`."""


@dataclass(frozen=True)
class FrankWolfeTail(Tail):
    """For steps that err, given the past, by at most level + scale * E.

    Parameters
    ----------
    start, curvature : float
        The largest excess risk at the start, and the curvature constant.
    steps : int
    level, scale : float
    exponential : bool
        Whether E has the tail of a standard exponential variable, else of a standard normal one.
    """

    start: float
    curvature: float
    steps: int
    level: float
    scale: float
    exponential: bool

    def bound(self, failure: float) -> float:
        t = np.arange(1, self.steps + 1)
        every = (self.steps + 1) * (self.steps + 2)
        weights = 2 * (t + 1) / every
        known = 2 * self.start / every + self.curvature * float((weights / (t + 2)).sum())
        rare = _exponential_sum if self.exponential else _normal_sum
        return known + self.level * float(weights.sum()) + self.scale * rare(weights, failure)


@dataclass(frozen=True)
class PosteriorTail(Tail):
    """For a draw with density exp(-loss / spread) over a convex set: a gamma variable's tail.

    Parameters
    ----------
    coefficients : int
    spread : float
        Of the mean loss.
    """

    coefficients: int
    spread: float

    def bound(self, failure: float) -> float:
        return self.spread * _exponential_sum(np.ones(self.coefficients), failure)


@dataclass(frozen=True)
class AverageTail(Tail):
    """For the average of projected gradient steps with normal noise, without momentum.

    Parameters
    ----------
    distance, radius : float
        From the start to any point of the set, and from 0.
    rate : float
        The step.
    steps, size : int
    gradient, noise : float
        The largest length of a gradient, and the standard deviation of the noise of an entry.
    """

    distance: float
    radius: float
    rate: float
    steps: int
    size: int
    gradient: float
    noise: float

    def bound(self, failure: float) -> float:
        rare = math.sqrt(2 * math.log(2 / failure) / self.steps)
        length = self.gradient + self.noise * (math.sqrt(self.size) + rare)
        drift = self.distance**2 / (2 * self.rate * self.steps) + self.rate * length**2 / 2
        return drift + 2 * self.radius * self.noise * rare


@dataclass(frozen=True)
class ProjectedTail(Tail):
    """For a solver behind a Gaussian projection that was drawn after the rows (Theorem 3.11).

    Parameters
    ----------
    inner : Tail, optional
    inner_risk : float
        Its expected excess risk, which Markov's inequality uses.
    slope, width, radius : float
    n_rows, dimension : int
    """

    inner: Tail | None
    inner_risk: float
    slope: float
    width: float
    radius: float
    n_rows: int
    dimension: int

    def bound(self, failure: float) -> float:
        moved = sum(
            margin_distortion(self.dimension, width, self.radius, self.n_rows, failure / 4)
            for width in (self.width, 0.0)
        )
        below = self.inner_risk / (failure / 2)
        if self.inner is not None:
            below = min(below, self.inner.bound(failure / 2))
        return below + self.slope * moved


def _exponential_sum(weights: np.ndarray, failure: float) -> float:
    """What sum w_t E_t exceeds rarely, by Chernoff's inequality for E_t exponential."""
    most = float(weights.max())

    def at(share: float) -> float:
        growth = -np.log1p(-share * weights / most).sum()
        return float(math.log(1 / failure) + growth) * most / share

    best = minimize_scalar(at, bounds=(1e-6, 1 - 1e-9), method="bounded")
    return float(min(best.fun, at(0.5)))


def _normal_sum(weights: np.ndarray, failure: float) -> float:
    return math.sqrt(2 * math.log(1 / failure) * float(np.square(weights).sum()))
