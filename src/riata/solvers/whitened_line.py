"""How much of a whitened model of numbers to keep, from two second moments along it.

A joint second moment of margins and slopes tells how far margins spread, how far slopes do, and how
both go together. So how much of the model is right follows from it alone, whatever the scales were
taken for. The first is released at the constant, and the second where the first leads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from riata.grid import X_STEPS
from riata.queries import JointMoments, Whitening
from riata.queries.whitening import MOST_BEFORE
from riata.solvers.empirical_bayes import likely_size, signal_part
from riata.solvers.gradient_path import GradientRoot
from riata.solvers.whitened_defaults import MOST_KEPT, in_range

if TYPE_CHECKING:
    from riata.solvers.whitened_run import Run

# The numbers below were chosen by the mean R2, at epsilon 0.1 and 0.3, of thirteen tables of 1,000
# to 10,000 rows: designs of benchmarks/arena_designs.py, others of categories and skewed numbers,
# and samples of housing, diamonds and visits; with true and with shuffled targets. Of variants with
# coarser sums over the same posterior, one with a LENGTH of 2 had .03 less at 0.1 and .01 less at
# 0.3. LENGTH_FROM was chosen by four tables of benchmarks/arena_rdatasets.py at 0.3 and 1,
# MOST_LENGTH by benchmarks/interval_coverage.py: with 2.5 coefficients of correlated, heavy-tailed
# and misspecified rows are too small by .2 to .5 of an error, with 3 by 0 to .4, and with 4 errors
# are a tenth larger.

#: Margins and slopes are shortened to this multiple of what they are taken to be; and to more, up
#: to a limit, where rows times strength are more than so many times its square.
LENGTH, LENGTH_FROM, MOST_LENGTH = 1.5, 200.0, 3.0

#: The logarithm to base 2 of the variance of margins, in units of what it is taken for at first:
#: its mean and standard deviation. The margins of nearly all of these tables were taken to be
#: 0.8 to 2.5 times as far spread as they were.
VARIANCE, GUESSED = -0.5, 0.7

#: The correlation of margins and targets is 0 with odds of 1 to this. Otherwise it is of any size.
SEEN = 0.5

#: Residuals that were shortened to `LENGTH` may have moved the intercept by so many standard
#: deviations of theirs, less if they were longer; and the constant by a part of this.
SKEWED, OF_CONSTANT = 0.1, 0.5

#: What is released along a model is of shortened margins and slopes, and so may say a wrong length
#: of it, by about this part. At n = 50,000 and epsilon 20 it was wrong by 2.7% (housing), 0.2%
#: (diamonds) and 1% (correlated, heavy-tailed and misspecified rows), and by 20% for flights, whose
#: delays are skewed.
OF_LINE = 0.03

#: At least this part of the slopes' variance is left. Moments of shortened rows may say a little
#: more than all.
LEFT, MOST_CORRELATED = 0.05, 1.1

#: Sums are over so many grids of so many points on either axis, each as wide as this many standard
#: deviations of the last on either side.
GRIDS, POINTS, WIDE = 5, 61, 4.0

_MOST = 1e100


class Moments(NamedTuple):
    """What was released when a part of the model was kept, in units of the guesses.

    The covariance is that of margins and of how far the targets lie above the model, and the noise
    that of a number on the diagonal.
    """

    part: float
    variance: float
    of_variance: float
    covariance: float
    of_covariance: float


class Line(NamedTuple):
    """The covariance of margins and targets, its error, the margins' variance, and what is left."""

    covariance: float
    error: float
    variance: float
    left: float


def likely_line(seen: list[Moments], whole: float, before: float) -> Line:
    """The mean of what two numbers may be, given noisy ones: sums over finer and finer grids.

    Parameters
    ----------
    seen : list of Moments
    whole : float
        The variance of the slopes at the constant.
    before : float
        What else is known: the odds of a correlation against none.
    """
    spans = np.array([[VARIANCE - 12 * GUESSED, VARIANCE + 6 * GUESSED], [0.0, MOST_CORRELATED]])
    found = Line(0.0, 0.0, 1.0, whole)
    for _ in range(GRIDS):
        powers, correlations = (np.linspace(low, high, POINTS) for low, high in spans)
        step = correlations[1] - correlations[0]
        # The first line is that of no correlation at all.
        sizes = np.append(0.0, correlations)[:, None] * np.sqrt(2.0**powers * whole)
        fits = -np.square((powers - VARIANCE) / GUESSED) / 2 + _fits(seen, sizes, 2.0**powers)
        fits[1:] += math.log(max(SEEN * before * step, 1e-300))
        chances = np.exp(fits - fits.max())
        chances /= chances.sum()
        found = _mean(chances, sizes, 2.0**powers, whole)
        correlated = np.exp(fits[1:] - fits[1:].max())
        for k, (points, weights) in enumerate(
            ((powers, chances.sum(axis=0)), (correlations, correlated.sum(axis=1)))
        ):
            weights = weights / weights.sum()
            middle = float(weights @ points)
            reach = WIDE * math.sqrt(float(weights @ np.square(points - middle)))
            reach += WIDE * (points[1] - points[0])
            spans[k] = max(spans[k, 0], middle - reach), min(spans[k, 1], middle + reach)
    return found


def _fits(seen: list[Moments], covariances: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """How well numbers explain what was released, as logarithms."""
    fits = np.zeros(covariances.shape)
    for each in seen:
        fits -= np.square((variances - _ordinary(each.variance)) / each.of_variance) / 2
        expected = covariances - each.part * variances
        fits -= np.square((expected - _ordinary(each.covariance)) / each.of_covariance) / 2
    return fits


def _mean(
    chances: np.ndarray, covariances: np.ndarray, variances: np.ndarray, whole: float
) -> Line:
    covariance = float((chances * covariances).sum())
    variance = float((chances * variances).sum())
    square = float((chances * np.square(covariances)).sum())
    left = max(whole - covariance**2 / variance, LEFT * whole)
    return Line(covariance, math.sqrt(max(square - covariance**2, 0.0)), variance, left)


def _ordinary(value: float) -> float:
    return min(max(value, -_MOST), _MOST)


def has_moments(run: Run) -> bool:
    """Whether moments are released along the model, and not slopes.

    For slopes that change with margins about as the bound on the curvature says, noise without the
    heavy tails of Laplace's, and a line that begins at a constant.
    """
    problem, loss = run.problem, run.problem.loss
    numbers = not (loss.classifies or loss.measured_curvature)
    return numbers and run.plan.budget.delta > 0 and not problem.unpenalized


def usual_margins(run: Run, w: np.ndarray) -> float:
    """What the standard deviation of a model's margins is taken for."""
    root = math.sqrt(run.most)
    spread = math.sqrt(float(run.ratios @ np.square(w)))
    return max(min(spread, root), 1e-9 * root)


def with_gradients(run: Run, part: float, error: float) -> tuple[float, float]:
    """How much of the model to keep, from two releases along it and from where gradients led.

    What was released along the model is of shortened rows. Where gradients say the length of the
    model better, all of it is kept.
    """
    if not isinstance(run.path, GradientRoot):
        return part, error
    size = max(float(np.linalg.norm(run.w - run.alone)), 1e-300)
    error, of_gradients = math.hypot(error, OF_LINE), run.path.noise / size
    kept = signal_part(of_gradients, error)
    return kept * part + 1 - kept, kept * error


def keep_likely_part(run: Run) -> None:
    """Go from the constant towards the model as far as two releases say, and mend the offset."""
    spread, whole, seen = usual_margins(run, run.w), 1.0, list[Moments]()
    run.base = run.constant
    unit = run.curvature * spread / run.spread  # of a margin of the whole model, in slopes
    fitted = run.curvature * run.overfit / spread / run.spread
    at = Place(0.0, 0.0, spread, run.spread)
    for _ in range(2):
        moments, means, noise = _released(run, at)
        across = at.margins / spread * at.slopes / run.spread
        of_margins = (at.margins / spread) ** 2
        seen.append(Moments(
            at.part * unit, moments[0, 0] * of_margins, noise * of_margins,
            -moments[0, 1] * across - fitted, noise / math.sqrt(2) * across,
        ))  # fmt: skip
        if len(seen) == 1:
            whole = likely_size(float(moments[1, 1]), noise, run.usual_slope**2)
        found = likely_line(seen, whole, run.odds)
        part = min(found.covariance / found.variance / unit, MOST_KEPT)
        here, mean = at, means[0] * at.margins
        at = Place(
            part, mean, in_range(spread * math.sqrt(found.variance)),
            in_range(run.spread * math.sqrt(found.left)),
        )  # fmt: skip
    run.kept, run.kept_error = with_gradients(run, part, found.error / found.variance / unit)
    if run.problem.fit_intercept:
        _mend_offset(run, here, at, means[1], noise / math.sqrt(2) / run.along_constant)


class Place(NamedTuple):
    """A part of the model, the mean margin of all of it, and the scales of margins and slopes.

    The intercept is such that margins have the mean of the constant.
    """

    part: float
    mean: float
    margins: float
    slopes: float


def _released(run: Run, at: Place) -> tuple[np.ndarray, np.ndarray, float]:
    """The second moments around the means of margin and slope, the means, and the noise."""
    constant = run.along_constant if run.problem.fit_intercept else 0.0
    one, whitening = run.w / at.margins, run.whitening
    line = Whitening.of((one @ whitening.matrix)[None], np.array([one @ whitening.centre]))
    model = run.model(at.part * run.w, run.constant.offset - at.part * at.mean)
    length = _length(run)
    limit = at.slopes * length * (MOST_BEFORE / X_STEPS)
    query = JointMoments(run.problem, model, limit, line, at.slopes, length, constant)
    matrix, noise = run.release("along", query)
    matrix = np.clip(matrix, -_MOST, _MOST)
    means = matrix[:2, -1] / constant if constant else np.zeros(2)
    return matrix[:2, :2] - np.outer(means, means), means, noise


def _length(run: Run) -> float:
    """What margins and slopes are shortened to, in units of what they are taken to be."""
    rows = run.strength * run.problem.n_features
    return min(max(LENGTH, math.sqrt(rows / LENGTH_FROM)), MOST_LENGTH)


def _mend_offset(run: Run, here: Place, last: Place, slope: float, noise: float) -> None:
    """The intercept, from three estimates: two of them are of slopes that were shortened.

    `slope` is the mean slope at the place of the last release, in units of its scale.
    """
    assert run.offset_error is not None
    kept, of_mean = run.kept, noise * here.margins
    skewed = SKEWED * last.slopes / run.curvature
    of_constant = math.hypot(run.constant_error, kept * of_mean, OF_CONSTANT * skewed)
    skewed *= LENGTH / _length(run)
    shortened = _weighted(
        (run.constant.offset - here.part * here.mean - slope * here.slopes / run.curvature
         + (here.part - kept) * last.mean,
         math.hypot(noise * here.slopes / run.curvature, (here.part - kept) * of_mean)),
        (run.offset + (1 - kept) * last.mean, math.hypot(run.offset_error, (1 - kept) * of_mean)),
    )  # fmt: skip
    offset, run.shift_error = _weighted(
        (run.constant.offset - kept * last.mean, of_constant),
        (shortened[0], math.hypot(shortened[1], skewed)),
    )
    run.offset = run.constant.offset - last.mean
    run.shift = offset + kept * last.mean - run.constant.offset


def _weighted(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """The mean of two estimates with errors, and its error."""
    part = signal_part(other[1], one[1])
    return part * one[0] + (1 - part) * other[0], math.sqrt(part) * one[1]
