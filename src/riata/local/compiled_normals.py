"""The generator's transform, compiled: the same numbers up to the last bits, several times faster.

Needs numba (the extra `riata[fast]`). Logarithm, sine and cosine are written out as polynomials
without branches, so that the compiler makes vector instructions of them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_LN2 = math.log(2.0)
_ROOT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)
_MANTISSA = np.int64((1 << 52) - 1)
_TURN = 2.0 * math.pi * 2.0**-32


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _log_tail(z):
    """log((1 + s) / (1 - s)) = 2 s (1 + z tail), with z = s^2."""
    tail = 1 / 21
    tail = tail * z + 1 / 19
    tail = tail * z + 1 / 17
    tail = tail * z + 1 / 15
    tail = tail * z + 1 / 13
    tail = tail * z + 1 / 11
    tail = tail * z + 1 / 9
    tail = tail * z + 1 / 7
    tail = tail * z + 1 / 5
    return tail * z + 1 / 3


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _sine_tail(z):
    """sin x = x + x z tail, with z = x^2."""
    tail = -1 / 1307674368000.0
    tail = tail * z + 1 / 6227020800.0
    tail = tail * z - 1 / 39916800.0
    tail = tail * z + 1 / 362880.0
    tail = tail * z - 1 / 5040.0
    tail = tail * z + 1 / 120.0
    return tail * z - 1 / 6.0


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _cosine_tail(z):
    """cos x = 1 + z tail, with z = x^2."""
    tail = 1 / 20922789888000.0
    tail = tail * z - 1 / 87178291200.0
    tail = tail * z + 1 / 479001600.0
    tail = tail * z - 1 / 3628800.0
    tail = tail * z + 1 / 40320.0
    tail = tail * z - 1 / 720.0
    tail = tail * z + 1 / 24.0
    return tail * z - 0.5


@njit(cache=True, nogil=True, error_model="numpy")
def box_muller(words, out):
    """Two normal numbers from each two words of 32 bits, for one row after another."""
    rows, count = words.shape
    pairs = count // 2
    raised = np.empty(pairs)
    bits = raised.view(np.int64)
    squared = np.empty(pairs)
    angle = np.empty(pairs)
    quarter = np.empty(pairs, np.int64)
    for row in range(rows):
        for i in range(pairs):
            raised[i] = np.float64(words[row, 2 * i]) + 0.5
        for i in range(pairs):
            # Exponent and mantissa, with the mantissa between sqrt(1/2) and sqrt(2).
            shifted = bits[i] - _ROOT_HALF_BITS
            exponent = shifted >> 52
            squared[i] = (np.float64(exponent) - 32.0) * _LN2
            bits[i] = (shifted & _MANTISSA) + _ROOT_HALF_BITS
        for i in range(pairs):
            s = (raised[i] - 1.0) / (raised[i] + 1.0)
            z = s * s
            tail = _log_tail(z)
            squared[i] = -2.0 * (squared[i] + 2.0 * s * (1.0 + z * tail))
        for i in range(pairs):
            # The nearest quarter of a turn, and what is left: at most an eighth.
            turned = (np.int64(words[row, 2 * i + 1]) + 0x20000000) & 0xFFFFFFFF
            quarter[i] = turned >> 30
            angle[i] = np.float64((turned & 0x3FFFFFFF) - 0x20000000) * _TURN
        for i in range(pairs):
            x = angle[i]
            z = x * x
            sine = x + x * z * _sine_tail(z)
            cosine = 1.0 + z * _cosine_tail(z)
            length = math.sqrt(squared[i])
            q = quarter[i]
            odd = (q & 1) != 0
            along = sine if odd else cosine
            across = cosine if odd else sine
            along = -along if (q == 1 or q == 2) else along
            across = -across if q >= 2 else across
            out[row, 2 * i] = length * along
            out[row, 2 * i + 1] = length * across
