"""What releases with known noise say: scales, coefficients, and how much of a model to keep.

Everything here is made of releases and of public numbers, and costs nothing.
"""

from __future__ import annotations

import math

import numpy as np

from riata.losses import Loss
from riata.solvers.defaults import SURE, VISIBLE
from riata.solvers.whitened_defaults import SAFE

#: Which quantile of sizes is the scale of them.
QUANTILE = 0.9

#: Bins whose noise is below this part of the rows are read as they are. Otherwise a scale is where
#: so many neighbouring bins with so much in each fit best; or a half or a quarter of it, where most
#: rows are 0, as of rare flags.
QUIET, WINDOW, FILLED, PARTS_FILLED = 0.02, 4, 0.15, 3

#: And each bin is less likely than the next larger one by this factor: bounds are rarely far off.
NEAR = 0.85

#: Rows longer than some length are seen if all of them are so many standard deviations of noise;
#: or if those of 2 to `WINDOW` neighbouring bins are `SURE`. With 1.5 and 2.5 blocks of housing
#: whose bounds are too wide a hundred times lose .03 of R2 (5,000 rows, epsilon 0.3), with 1 it is
#: .1; other tables of benchmarks/arena_data.py are as with 2.
LONGER = 2.0

#: Most rows are 0 if bin 0 has half of them and this many standard deviations more.
MOSTLY = 2.0

#: Before anything is seen, coefficients are null with this probability; or they have a variance
#: that explains all, or half, a quarter and so on of what there is, in so many halvings.
NULL, HALVINGS = 0.5, 16

#: All columns are as likely as so many sets of fewer, in logarithms.
SPARSER = 0.0

#: A signal has the variance of the noise, or up to so many powers of 4 more or less.
POWERS = 3

#: The standard deviation of the logarithm to base 2 of a number that was guessed. That of the
#: curvature along a model was between 1/7 of the guess and 3 times as much on nine designs and
#: tables, 1,000 x 8 and medical expenses among them.
GUESSED = 1.0

#: How far from 1 a good model's best multiple may lie.
GOOD = 0.3

#: But it is not below this, and so its sign is never lost.
LEAST = 0.02

#: Numbers beyond this count as this, and noise is never smaller: their squares are ordinary ones.
_MOST, _LEAST_NOISE = 1e100, 1e-150

#: A coordinate is flat if its second moment is no more than what noise has alone: the length of
#: the noise matrix and this many standard deviations of a cell, which it exceeds with a probability
#: of about 0.3% (Tracy-Widom distribution). The error of a column is unknown if this part of its
#: variance, or more, is of flat coordinates.
BEYOND_NOISE, FLAT_PART = 2.0, 0.1


def high_quantile(counts: np.ndarray, noise: float, edges: np.ndarray, safe: float) -> float:
    """A high quantile of the sizes that are not 0, as a part of the largest size.

    Counts of bins have noise. A row without entries, or without a slope, says nothing of a scale:
    with most rows of zeros, as of rare flags, a quantile of all of them would be 0.
    """
    counts = np.where(edges > 0, np.clip(counts, -_MOST, _MOST), 0.0)
    if noise < QUIET:
        q, shares = QUANTILE, np.where(counts > VISIBLE * noise, counts, 0.0)
    else:
        sums = np.convolve(counts, np.ones(WINDOW))[: len(counts)]
        filled = FILLED / 2.0 ** np.arange(PARTS_FILLED)[:, None]
        fits = np.logaddexp.reduce((filled * sums - WINDOW * filled**2 / 2) / noise / noise)
        fits += math.log(NEAR) * np.arange(len(fits))[::-1]
        q, shares = safe, np.exp(fits - fits.max())
    if not shares.sum():
        return 1.0
    below = np.cumsum(shares) / shares.sum()
    return float(edges[min(max(int(np.searchsorted(below, q - 1e-12)), 1), len(edges) - 1)])


def high_length(counts: np.ndarray, noise: float, edges: np.ndarray, safe: float) -> float:
    """A high quantile of the lengths of rows, or more if few long ones make most of their squares.

    Such rows have leverage: where the model is noise, predictions are wrong by the length of a row.
    Where most rows are 0 the scale of the others is easily lost: it is on its large side.
    """
    counts, noise = np.clip(counts, -_MOST, _MOST), min(noise, _MOST)
    if counts[0] - 0.5 > MOSTLY * noise:
        safe = max(safe, 1 - SAFE)
    scale = high_quantile(counts, noise, edges, safe)
    return max(scale, _length_by_squares(counts, noise, edges))


def _length_by_squares(counts: np.ndarray, noise: float, edges: np.ndarray) -> float:
    """The length with which a tenth of the rows would have the squares of all that are seen."""
    size, found = len(counts), 0.0
    longer = np.cumsum(counts[::-1])[::-1]
    for width, sure in ((size, LONGER), *((width, SURE) for width in range(2, WINDOW + 1))):
        sums = longer - np.append(longer[width:], np.zeros(width))
        errors = noise * np.sqrt(np.minimum(width, np.arange(size, 0, -1)))
        parts = np.clip(sums / (1 - QUANTILE), 0.0, 1.0)
        found = max(found, float((edges * np.sqrt(parts))[sums > sure * errors].max(initial=0.0)))
    return found


def shrunken(values: np.ndarray, noise: np.ndarray, most: float) -> np.ndarray:
    """The mean of coefficients given noisy ones, by a prior over what they explain of `most`."""
    noise = np.maximum(noise, _LEAST_NOISE)
    # In units of the noise: the roots of the prior variances, and the values.
    explained = math.sqrt(min(most, _MOST) / max(len(values), 1))
    roots = explained * 2.0 ** (-np.arange(HALVINGS) / 2)
    v = np.square(np.minimum(roots[:, None] / noise, _MOST))
    squares = np.square(np.clip(np.clip(values, -_MOST, _MOST) / noise, -_MOST, _MOST))
    fits = -0.5 * (np.log1p(v) + squares / (1 + v)).sum(axis=1)
    null = -0.5 * float(squares.sum())
    fits += math.log((1 - NULL) / HALVINGS)
    null += math.log(NULL)
    top = max(float(fits.max()), null)
    odds = np.exp(fits - top)
    chances = odds / (odds.sum() + math.exp(null - top))
    return np.asarray(values * (chances @ (v / (1 + v))))


def signal_part(signal: float, noise: float) -> float:
    """The part of the variance that is signal, from two standard deviations; 0 of nothing."""
    largest = max(signal, noise)
    if largest == 0:
        return 0.0
    if math.isinf(largest):
        return float(noise < largest)
    return (signal / largest) ** 2 / ((signal / largest) ** 2 + (noise / largest) ** 2)


def likely_columns(
    w: np.ndarray, matrix: np.ndarray, error: float, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """The model nearest to w that has the columns which the evidence is for, and which these are.

    The coefficient of a column is the inner product of w with its column of `matrix`. Errors of w
    are independent and all alike, so to leave out a column is to project w onto what is orthogonal
    to it. The weakest leaves first; then the others are looked at again. All models on this way
    are compared, by what they leave to the noise and by how many sets of columns are as large.
    """
    size, error, w = len(w), max(error, _LEAST_NOISE), np.clip(w, -_MOST, _MOST)
    left, kept = _in_range(matrix), np.ones(matrix.shape[1], dtype=bool)
    best, found, columns = -math.inf, w, kept.copy()
    while True:
        k = int(np.count_nonzero(kept))
        score = _evidence(float(w @ w), min(k, size), size, error, most) - _log_sets(k, len(kept))
        if score > best + (SPARSER if k == len(kept) else 0.0):
            best, found, columns = score, w, kept.copy()
        squares = np.square(left).sum(axis=0)
        known = kept & (squares > 1e-20 * squares.max(initial=0.0))
        if k <= 1 or not known.any():
            return found, columns
        costs = np.where(known, np.square(w @ left) / np.where(known, squares, 1.0), math.inf)
        weakest = int(costs.argmin())
        unit = left[:, weakest] / math.sqrt(squares[weakest])
        w = w - unit * float(unit @ w)
        left -= np.outer(unit, unit @ left)
        kept[weakest] = False


def _in_range(matrix: np.ndarray) -> np.ndarray:
    """A multiple of a matrix by a power of two, with a largest entry of about 1."""
    exponent = int(np.frexp(np.abs(matrix).max(initial=0.0))[1])
    return np.ldexp(matrix, -exponent)


def _evidence(square: float, k: int, size: int, error: float, most: float) -> float:
    """How likely numbers are of which k are a model's, of this squared length, and others noise."""
    # In units of the noise: the prior variances, and the square.
    largest = min(min(most, _MOST) / max(k, 1) / error / error, _MOST)
    variances = largest * 2.0 ** -np.arange(HALVINGS)
    fits = min(square / error / error, _MOST) / 2 * (variances / (1 + variances))
    fits -= k / 2 * np.log1p(variances)
    top = float(fits.max())
    return top + math.log(float(np.exp(fits - top).mean()))


def _log_sets(k: int, p: int) -> float:
    """The logarithm of the number of sets of k of p columns."""
    return math.lgamma(p + 1) - math.lgamma(k + 1) - math.lgamma(p - k + 1)


def signal_odds(w: np.ndarray, error: float) -> float:
    """How much likelier numbers are with a signal of some size than as noise alone."""
    more = 4.0 ** np.arange(-POWERS, POWERS + 1)
    known = np.clip(np.clip(w, -_MOST, _MOST) / max(error, _LEAST_NOISE), -_MOST, _MOST)
    fits = -len(w) / 2 * np.log1p(more) + float(known @ known) / 2 * more / (1 + more)
    return float(np.exp(np.minimum(fits, 50.0)).mean())


def likely_size(found: float, noise: float, guess: float) -> float:
    """A positive number that was guessed up to a factor and found with noise.

    What was found, where it is beyond doubt; or else the mean.
    """
    if found > SURE * noise:
        return found
    powers = np.linspace(-4 * GUESSED, 4 * GUESSED, 65)
    sizes = min(guess, _MOST) * 2.0**powers
    misses = (sizes - np.clip(found, -_MOST, _MOST)) / max(noise, _LEAST_NOISE)
    fits = -(np.square(np.clip(misses, -_MOST, _MOST)) + np.square(powers / GUESSED)) / 2
    chances = np.exp(fits - fits.max())
    return float(chances @ sizes / chances.sum())


def part_to_keep(part: float, noise: float, before: float = 1.0) -> float:
    """How much of a model to keep, if its best multiple was found to be `part`.

    The mean, where the model is null or good up to a factor near 1; `before` are the odds of that.
    """
    null, part = min(max(noise, 1e-9), _MOST) ** 2, min(max(part, -_MOST), _MOST)
    whole = null + GOOD**2
    odds = before * math.sqrt(null / whole)
    odds *= math.exp(min((part**2 / null - (part - 1) ** 2 / whole) / 2, 50.0))
    return odds / (1 + odds) * max((part * GOOD**2 + null) / whole, LEAST)


def best_constant(loss: Loss, slope: float, bound: float) -> tuple[float, float]:
    """The best constant margin for two classes, and the curvature there.

    `slope` is the mean slope at 0.
    """
    targets, part = np.array(loss.class_targets()), class_part(loss, slope)
    parts = np.array([part, 1 - part])
    low, high = -bound, bound
    for _ in range(60):
        middle = (low + high) / 2
        rises = float(parts @ loss.slope(np.full(2, middle), targets)) > 0
        low, high = (low, middle) if rises else (middle, high)
    return low, float(parts @ loss.curvature(np.full(2, low), targets))


def class_part(loss: Loss, slope: float) -> float:
    """The part of the rows that are of the first of two classes, from the mean slope at 0."""
    first, second = loss.slope(np.zeros(2), np.array(loss.class_targets()))
    return float(np.clip((slope - second) / ((first - second) or 1.0), 1e-3, 1 - 1e-3))


def shortened_slopes(loss: Loss, offset: float, spread: float, limit: float) -> tuple[float, float]:
    """What factors that cut slopes of log odds at a limit leave of curvature and variance.

    The mean factor and the mean square, over normal margins, for rows of a typical length. Both
    labels have the same factor.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(32)
    margins = np.clip(offset + spread * nodes, -_MOST, _MOST)
    targets = [np.full(len(nodes), target) for target in loss.class_targets()]
    largest = np.maximum(*(np.abs(loss.slope(margins, target)) for target in targets))
    bends = weights * loss.curvature(margins, targets[0])
    if not bends.sum() > 0:
        return 1.0, 1.0
    kept = np.minimum(1.0, limit / np.maximum(largest, _LEAST_NOISE))
    bends /= bends.sum()
    return float(bends @ kept), float(bends @ np.square(kept))


def averaged_noise(noises: np.ndarray, rate: float, pull: float, averaged: int) -> float:
    """The noise of the mean of the last iterates.

    Parameters
    ----------
    noises : ndarray
        Of the gradients of all steps.
    rate, pull : float
        How far a step goes along a gradient, and which part of an error it takes away.
    averaged : int
        The number of iterates that are averaged, the last ones.
    """
    steps = len(noises)
    left = (1 - min(pull, 1.0)) ** np.arange(steps)
    counted = [left[max(steps - averaged - s, 0) : steps - s].sum() for s in range(steps)]
    return rate / averaged * float(np.linalg.norm(np.array(counted) * noises))


def without(matrix: np.ndarray, left_out: np.ndarray) -> np.ndarray:
    """A projection: what is orthogonal to some columns of a matrix stays, and these become 0."""
    vectors, sizes, _ = np.linalg.svd(_in_range(matrix[:, left_out]), full_matrices=False)
    vectors = vectors[:, sizes > 1e-10 * sizes.max(initial=1e-300)]
    return np.asarray(np.eye(len(matrix)) - vectors @ vectors.T)


def lost_in_noise(eigenvalues: np.ndarray, noise: float) -> np.ndarray:
    """Which eigenvalues of a noisy matrix may be of noise alone; `noise` is off the diagonal."""
    return eigenvalues <= (2 * math.sqrt(len(eigenvalues)) + BEYOND_NOISE) * noise


def covariances(root: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """Of numbers that are sums of independent errors, and the part that flat ones have in it.

    In a direction in which rows hardly vary a gradient does not pull the noise of earlier steps
    back, so that its error is unknown.

    Parameters
    ----------
    root : ndarray of shape (r, k)
        What each of r errors, of standard deviation 1, adds to each number.
    flat : ndarray of bool
        Which errors these are.
    """
    root = np.clip(root, -_MOST, _MOST)
    return np.stack([root.T @ root, root[flat].T @ root[flat]])


def known_errors(covariance: np.ndarray) -> np.ndarray:
    """Standard errors; NaN of numbers that lean on flat directions."""
    whole, guessed = (np.diag(each) for each in covariance)
    return np.where(guessed > FLAT_PART * whole, np.nan, np.sqrt(whole))
