"""The exponential function and the logarithm with the same bits on every machine."""

from __future__ import annotations

import math

import numpy as np

from riata.losses.logistic_function import exp_below

#: Beyond this size of a margin its exponential does not change any more.
LARGEST_EXPONENT = 40.0

_ROOT, _LOG_2 = 0.7071067811865476, 0.6931471805599453


def exponential(z: np.ndarray) -> np.ndarray:
    """e^z, off by at most 2^-42 of it, for |z| up to 40, and constant beyond.

    Sums, products and quotients alone, each rounded as IEEE 754 says.
    """
    z = np.asarray(z, dtype=np.float64)
    below = exp_below(z)
    return np.where(z <= 0, below, 1.0 / below)


def logarithm(x: np.ndarray) -> np.ndarray:
    """log(x) of positive numbers, off by at most 2^-50 of 1 + |log(x)|.

    A power of two is taken out, which is exact. The rest lies between the roots of 1/2 and of 2;
    its logarithm is 2 artanh(s) with |s| < 0.172, by the series up to the 21st power.
    """
    part, power = np.frexp(np.asarray(x, dtype=np.float64))
    small = part < _ROOT
    part, power = np.where(small, 2.0 * part, part), np.where(small, power - 1, power)
    s = (part - 1.0) / (part + 1.0)
    square, series = s * s, np.full_like(s, 1 / 21)
    for odd in range(19, 0, -2):
        series = 1 / odd + square * series
    return power * _LOG_2 + 2.0 * s * series


def public_logarithm(x: float) -> float:
    """log(x) of a public number to 20 binary places: what libraries round otherwise is gone."""
    return round(math.log(x) * 2**20) / 2**20
