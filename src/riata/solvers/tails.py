"""Bounds on the excess risk that hold with high probability, from the noise of each solver.

The proofs are in docs/privacy/frank_wolfe.md and docs/algorithms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from riata.embedding import margin_distortion
from riata.sets.widths import expected_l2


class Tail(ABC):
    """What the excess risk exceeds rarely."""

    #: Whether it counts what an intercept costs.
    with_intercept: ClassVar[bool] = False

    @abstractmethod
    def bound(self, failure: float) -> float:
        """A number that the excess risk exceeds with probability at most `failure`."""


@dataclass(frozen=True)
class FrankWolfeTail(Tail):
    """For steps that err, given the past, by at most level + scale * E.

    Parameters
    ----------
    start, curvature : float
        The largest excess risk at the start, and the curvature constant: 0 for steps of 1.
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
        rare = _exponential_sum if self.exponential else _normal_sum
        if self.curvature == 0:  # steps of 1: the last one alone counts
            return self.level + self.scale * rare(np.ones(1), failure)
        t = np.arange(1, self.steps + 1)
        every = (self.steps + 1) * (self.steps + 2)
        weights = 2 * (t + 1) / every
        known = 2 * self.start / every + self.curvature * float((weights / (t + 2)).sum())
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
class ObjectiveTail(Tail):
    """For the minimiser of a risk with a random linear term, and noise that hides its error.

    Parameters
    ----------
    known : float
        What the penalty, the smoothing and the error of the computed minimum cost.
    scale : float
        The scale of the linear term of the mean loss.
    width, radius : float
        The Gaussian width of the set, and its largest length.
    size : int
        The number of coefficients.
    hiding : float
        The scale of the hiding noise, times how steep the risk is.
    pure : bool
        Whether the term has a Gamma length and the hiding noise is Laplace, else both are normal.
    """

    known: float
    scale: float
    width: float
    radius: float
    size: int
    hiding: float
    pure: bool

    with_intercept: ClassVar[bool] = True

    def bound(self, failure: float) -> float:
        term, hidden = 0.9 * failure, 0.1 * failure  # the term costs most
        if self.pure:
            return (
                self.known + self.scale * self._turned(term) + self.hiding * self._laplace(hidden)
            )
        length = math.sqrt(self.size) + _normal_sum(np.ones(1), hidden)
        return self.known + self.scale * self._normal(term) + self.hiding * length

    def _normal(self, failure: float) -> float:
        """What the widest difference along a standard normal vector exceeds rarely."""
        return 2 * (self.width + self.radius * _normal_sum(np.ones(1), failure))

    def _turned(self, failure: float) -> float:
        """The same along a vector with an even direction and a Gamma length.

        An even direction is that of a normal vector, which is rarely short.
        """
        straight = 2 * self.radius * _gamma_tail(self.size, failure)
        short = expected_l2(self.size) - _normal_sum(np.ones(1), failure / 3)
        if short <= 0:
            return straight
        along = min(2 * self.radius, self._normal(failure / 3) / short)
        return min(straight, along * _gamma_tail(self.size, failure / 3))

    def _laplace(self, failure: float) -> float:
        """What the length of a standard Laplace vector exceeds rarely, by its moments."""
        squares = [2 * self.size + math.sqrt(20 * self.size / failure)]
        squares += [
            self.size * math.exp((math.lgamma(2 * k + 1) - math.log(failure)) / k)
            for k in range(1, 32)
        ]
        return math.sqrt(min(squares))


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


def _gamma_tail(shape: int, failure: float) -> float:
    """What a Gamma variable exceeds rarely: its moments are those of a sub-gamma variable."""
    rare = math.log(1 / failure)
    return shape + math.sqrt(2 * shape * rare) + rare


def _normal_sum(weights: np.ndarray, failure: float) -> float:
    return math.sqrt(2 * math.log(1 / failure) * float(np.square(weights).sum()))
