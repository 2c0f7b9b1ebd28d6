"""The best constant and the mean curvature there, for losses whose curvature is measured."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from riata.losses import Loss
from riata.losses.log_link import LogLinkLoss
from riata.problem import Problem
from riata.queries import LimitedSlope, MeanCurvature, Query
from riata.solvers.constant_share import posterior
from riata.vectors import Vector

#: Slopes, and curvatures of losses with a log link, beyond this multiple of the slopes' scale count
#: as this. The intercept moves at most so far up or down at a time.
MOST_OF_CONSTANT, MOST_SHIFT = 4.0, 12.0

#: Before anything is seen, the constant lies about so far from where it usually is, in units of the
#: largest target; but the logarithm of a mean or of odds so far. A step goes wrong by about this
#: part of it.
FAR, FAR_FOR_LOGARITHMS, CURVED = 0.5, 2.0, 0.25

#: A posterior is summed over so many grids of so many points, each as wide as this many standard
#: deviations of the last on either side; noise counts as at least this part of the curvature,
#: and no logarithm is farther than this from the present one.
GRIDS, POINTS, WIDE, LEAST_NOISE, FARTHEST = 6, 401, 8.0, 1e-9, 50.0


def error_at_first(problem: Problem) -> float:
    """How far the best constant may be from the first one, before it is measured."""
    of_logarithms = problem.loss.classifies or problem.loss.link == "log"
    return FAR_FOR_LOGARITHMS if of_logarithms else FAR * problem.y_bound


def first_constant(problem: Problem) -> Vector:
    """The constant that a fit begins with: for counts and amounts in their own units."""
    usual = problem.loss.usual_offset(problem.y_bound) if problem.fit_intercept else 0.0
    return Vector.zero(problem.n_features).with_offset(usual)


def releases(problem: Problem, rounds: int) -> int:
    """How many numbers so many rounds release: slopes, and curvatures that nobody knows."""
    return rounds if problem.loss.known_curvature(0.0) is not None else 2 * rounds


class MeasuredConstant:
    """The best constant, as far as mean slopes with noise tell.

    With a log link a slope tells the mean of the targets, and all slopes together tell it best. Its
    logarithm is another matter: noise may hide how far down it is, but not that it is far up. So
    its posterior is that of the mean, and no step along a slope, which goes too far up.

    Attributes
    ----------
    model : Vector
    curvature : float
        The mean curvature there.
    error : float
        The standard error of the intercept.
    """

    def __init__(self, problem: Problem, model: Vector, curvature: float) -> None:
        self.problem, self.model, self.curvature = problem, model, curvature
        self.error, self._first = error_at_first(problem), model.offset
        # Of the mean of the targets, over that of the first constant: its estimate times its
        # precision, and its precision.
        self._seen, self._precision = 0.0, 0.0

    def measure(self, scale: float, release: Callable[[Query], tuple[float, float]]) -> None:
        """Release the mean slope, and the mean curvature unless the loss tells it.

        Parameters
        ----------
        scale : float
            Of the slopes.
        release : callable
            From a query to its release and the standard deviation of the noise.
        """
        problem, loss, limit = self.problem, self.problem.loss, MOST_OF_CONSTANT * scale
        slope, noise_of_slope = release(LimitedSlope(problem, self.model, limit))
        known = loss.known_curvature(self.model.offset)
        if known is None:
            most = limit if loss.link == "log" else math.inf
            most = min(most, loss.curvature_bound(problem.y_bound))
            curvature, noise = release(MeanCurvature(problem, self.model, most))
            known = loss.usual_curvature(slope, max(curvature, 2 * noise))
        self.curvature = known
        if problem.fit_intercept:
            self.see(slope, noise_of_slope)

    def see(self, slope: float, noise: float) -> None:
        """Move to where a mean slope at the present constant, and all before, say."""
        problem, loss, offset = self.problem, self.problem.loss, self.model.offset
        if loss.link == "log":
            far, first, most = error_at_first(problem), self._first, math.inf
            unit = math.exp(offset - first)  # of the first mean, so that it is an ordinary number
            found, falls = unit * (1 - slope / self.curvature), unit / self.curvature
            if isinstance(loss, LogLinkLoss):
                of_first, most = math.exp(-first), math.log(problem.y_bound)
                found, falls = (of_first * each for each in loss.likely_mean(offset, slope))
            precision = 1 / max(falls * noise, LEAST_NOISE * unit) ** 2
            self._seen += precision * found
            self._precision += precision
            mean, noise = self._seen / self._precision, 1 / math.sqrt(self._precision)
            shift, self.error = likely_logarithm(
                mean / unit, noise / unit, first - offset, far, most - offset
            )
        else:
            shift, error = likely_shift(loss, slope, noise, self.curvature, self.error)
            self.error = math.hypot(error, CURVED * shift)
        bound = problem.offset_bound
        moved = float(np.clip(offset + shift, -bound, bound))
        here, there = map(loss.innermost.known_curvature, (offset, moved))
        self.curvature *= there / here if here and there else 1.0
        self.model = self.model.with_offset(moved)


def likely_shift(
    loss: Loss, slope: float, noise: float, curvature: float, error: float
) -> tuple[float, float]:
    """How far up the best intercept is, and the standard error of that, from a noisy mean slope.

    `error` is how far it may be before.
    """
    slope, noise = slope / curvature, noise / curvature
    if loss.link == "log":
        return likely_logarithm(1 - slope, noise, 0.0, error)
    return posterior(min(max(-slope, -MOST_SHIFT), MOST_SHIFT), noise, error)


def likely_logarithm(
    value: float, noise: float, centre: float, error: float, most: float = math.inf
) -> tuple[float, float]:
    """The mean and the standard deviation of the logarithm of a number, given a noisy one.

    Before, it is normal with this centre and error, and at most `most`. The sums are over grids
    that become finer around the mean.
    """
    noise, error = max(noise, LEAST_NOISE), max(error, LEAST_NOISE)
    low, high = centre - WIDE * error, min(centre + WIDE * error, most)
    low, high = max(min(low, high - error), -FARTHEST), min(high, FARTHEST)
    mean = deviation = 0.0
    for _ in range(GRIDS):
        points = np.linspace(low, high, POINTS)
        misfit = np.square((np.exp(points) - value) / noise)
        misfit += np.square((points - centre) / error)
        chances = np.exp((misfit.min() - misfit) / 2)
        mean = float(chances @ points / chances.sum())
        spread = float(chances @ np.square(points - mean) / chances.sum())
        deviation = math.sqrt(spread)
        reach = WIDE * math.hypot(deviation, (high - low) / POINTS)
        low, high = max(low, mean - reach), min(high, mean + reach)
    return min(max(mean, -MOST_SHIFT), MOST_SHIFT), max(deviation, LEAST_NOISE)
