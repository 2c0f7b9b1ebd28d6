from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from riata.losses.base import Loss

#: An intercept of 6 is a class of one in four hundred; rarer ones are beyond a private fit's reach.
_LARGEST_LOG_ODDS = 6.0

#: Slopes are computed so many at a time, which stay in the cache of a processor.
_AT_ONCE = 2**12

#: u expit(-u) is largest at u = 1.2785, and u^2 expit'(u) at u = 2.3994: smaller targets than the
#: largest one are the worst beyond. The values are rounded up.
_MOST_STEEP, _LARGEST_STEEP = 1.2784645427610738, 0.2784645427610738
_MOST_BENT, _LARGEST_BENT = 2.3993572805154676, 0.4392288398906452


def _steepest(margin: np.ndarray, y: float) -> np.ndarray:
    """The largest t expit(t margin) over 0 <= t <= y."""
    far = _LARGEST_STEEP / np.maximum(-margin, _MOST_STEEP / y)
    return np.where(y * margin >= -_MOST_STEEP, y * expit(y * margin), far)


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y margin)) for labels y of -1 and 1."""

    name = "logistic"
    classifies = True
    twice_differentiable = True

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -y * margin)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * logistic(-y * margin)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        odds = logistic(y * margin)
        return y * y * odds * (1 - odds)

    def slope_bound(self, margin: float, y: float) -> float:
        return y * float(logistic(np.array(y * margin)))

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        return -_steepest(-margin, y), _steepest(margin, y)

    def curvature_beyond(self, margin: np.ndarray, y: float) -> np.ndarray:
        size = np.abs(margin)
        odds = expit(y * size)
        far = _LARGEST_BENT / np.maximum(size, _MOST_BENT / y) ** 2
        return np.where(y * size <= _MOST_BENT, y * y * odds * (1 - odds), far)

    def curvature_bound(self, y: float) -> float:
        return y * y / 4

    def offset_bound(self, y: float) -> float:
        return _LARGEST_LOG_ODDS


def logistic(z: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-z), off by at most 2^-42: the same bits on every machine and in compiled code.

    Sums, products and quotients alone, each rounded as IEEE 754 says and in the order in which
    `engines/compiled/losses.py` has them: what a library makes of `exp` differs in the last bit.
    """
    z = np.asarray(z, dtype=np.float64)
    flat, out = z.reshape(-1), np.empty(z.size)
    for start in range(0, len(flat), _AT_ONCE):
        few = flat[start : start + _AT_ONCE]
        share = 1.0 / (1.0 + exp_below(few))
        out[start : start + _AT_ONCE] = np.where(few <= 0, 1.0 - share, share)
    return out.reshape(z.shape)


def exp_below(z: np.ndarray) -> np.ndarray:
    """e^-|z| up to 2^-42 relative, not below e^-40: Taylor's series at z / 256, then 8 squares."""
    r = -0.00390625 * np.minimum(np.abs(z), 40.0)
    r2 = r * r
    r4 = r2 * r2
    e = 1 / 24 + r * (1 / 120) + r2 * (1 / 720 + r * (1 / 5040))
    e += r4 * (1 / 40320 + r * (1 / 362880) + r2 * (1 / 3628800))
    e = 1.0 + r + r2 * (1 / 2 + r * (1 / 6)) + r4 * e
    for _ in range(8):
        e *= e
    return e
