"""Logistic regression from second moments: the direction by least squares, then its scale.

For targets of -1 and 1 and margins that are about normal, the least-squares coefficients point in
the direction of the logistic ones. Scale a and offset c then solve two equations in one variable
each: the mean of the target is E[2 s(c + a z) - 1], and the slope of least squares on z itself is
1 = a E[2 s'(c + a z)], with s the logistic function and z the least-squares margin.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from riata.local.learners.moments import Covariances
from riata.local.learners.ridge import SpectralFilter

#: Margins of a standard deviation beyond this are not told apart from certainty.
STEEPEST = 8.0
#: No more of a target of -1 and 1 is taken to be explained by a line.
_MOST_EXPLAINED = 0.6
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def _offset(center: float, spread: float) -> float:
    """The c for which E[2 s(c + spread z) - 1] is the mean of the target."""

    def off(c: float) -> float:
        return float(_WEIGHTS @ (2.0 * expit(c + spread * _NODES) - 1.0)) - center

    return float(brentq(off, -40.0 - 8.0 * spread, 40.0 + 8.0 * spread))


def scale_and_offset(center: float, variance: float) -> tuple[float, float]:
    """Scale and offset for least-squares margins of this variance around 0.

    Parameters
    ----------
    center : float
        The mean of the target, between -1 and 1.
    variance : float
        Of the least-squares margins.
    """
    center = float(np.clip(center, -0.999, 0.999))
    if variance <= 0.0:
        return 0.0, _offset(center, 0.0)
    deviation = math.sqrt(variance)

    def slope(spread: float) -> float:
        """What least squares finds for true margins of this spread, less what it found."""
        odds = expit(_offset(center, spread) + spread * _NODES)
        return spread * float(_WEIGHTS @ (2.0 * odds * (1.0 - odds))) - deviation

    spread = STEEPEST if slope(STEEPEST) <= 0.0 else float(brentq(slope, 0.0, STEEPEST))
    return spread / deviation, _offset(center, spread)


def odds_variances(
    moments: Covariances, spectral: SpectralFilter, theta: np.ndarray, explained: float
) -> np.ndarray:
    """Mean squares of the errors of the logistic coefficients scale * theta.

    To first order the error is (a G + 2 a' theta theta') db - (a G + a' theta theta') E theta with
    the noise db of b and E of A: G solves the equation, a is the scale and a' its derivative by
    the explained variance. The terms with a' are added to those that shrinking leaves, whose scale
    is the one of all that could be explained.
    """
    s, t = moments.cross_noise, moments.gram_noise
    possible = explained + spectral.unexplained
    scale, _ = scale_and_offset(moments.center, explained)
    wanted, _ = scale_and_offset(moments.center, max(explained, min(possible, _MOST_EXPLAINED)))
    step = 0.01 * explained
    more, _ = scale_and_offset(moments.center, explained + step)
    slope = (more - scale) / step
    length = float(theta @ theta)
    both = scale * slope * spectral.apply(theta) * theta
    once = slope**2 * length * theta**2
    extra = 4.0 * s**2 * (both + once) + t**2 * length * (4.0 * both + 2.0 * once)
    return spectral.variances(scale, wanted) + np.maximum(extra, 0.0)
