"""The logistic function and its integral with the same bits on every machine."""

from __future__ import annotations

import numpy as np

#: Slopes are computed so many at a time, which stay in the cache of a processor.
_AT_ONCE = 2**13


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
    r = np.minimum(np.abs(z), 40.0)
    r *= -0.00390625
    r2 = r * r
    r4 = r2 * r2
    # 1/24 + r/120 + r2 (1/720 + r/5040) + r4 (1/40320 + r/362880 + r2/3628800), in place.
    e, term = r * (1 / 120), r * (1 / 5040)
    e += 1 / 24
    term += 1 / 720
    term *= r2
    e += term
    term = r * (1 / 362880)
    term += 1 / 40320
    term += r2 * (1 / 3628800)
    term *= r4
    e += term
    # 1 + r + r2 (1/2 + r/6) + r4 e
    e *= r4
    term = r * (1 / 6)
    term += 1 / 2
    term *= r2
    r += 1.0
    r += term
    r += e
    for _ in range(8):
        r *= r
    return r


def softplus(z: np.ndarray) -> np.ndarray:
    """log(1 + e^z), off by at most 2^-40 of 1 + |z|: the same bits on every machine.

    The logarithm of 1 + e is 2 artanh(e / (2 + e)), by its series up to the 25th power: for e <= 1
    the argument is at most 1/3, so what is left out is below 2^-46.
    """
    e = exp_below(z)
    s = e / (2.0 + e)
    square, series = s * s, np.full_like(s, 1 / 25)
    for power in range(23, 0, -2):
        series = 1 / power + square * series
    return np.maximum(z, 0.0) + 2.0 * s * series
