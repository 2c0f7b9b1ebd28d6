"""Renyi divergences of single events."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

#: Below this value psi (see `bounded_range_divergence`) equals its series to machine precision.
_SMALL = 0.25
_PSI_SERIES = ((2, 1 / 24), (4, -1 / 2880), (6, 1 / 181440), (8, -1 / 9676800), (10, 1 / 479001600))

#: Orders up to here are computed for sampled events; beyond, the bound without sampling is used.
_MOST_SAMPLED_ORDER = 1024

#: A bound on the rate at which others tie with the winner of a maximum with Laplace noise, at its
#: level: Lemma 10 of docs/privacy/selection.md. The rate is 1.174 in the worst example known.
MOST_TIES = 1.211

#: Beyond this exponent nothing is gained.
_LARGEST_EXPONENT = 300.0


def sampled_gaussian_divergence(z: float, rate: float, alpha: float) -> float:
    """A bound for neighbours that differ by one summand, or by two of half the sensitivity."""
    plain = alpha / (2 * z * z)
    if rate == 1 or 2 * alpha > _MOST_SAMPLED_ORDER:
        return plain
    removed = _sampled_log_moment(z, rate, alpha) / (alpha - 1)
    there = _sampled_log_moment(2 * z, rate, 2 * alpha) / (2 * alpha - 1)
    back = _sampled_log_moment(2 * z, rate, 2 * alpha - 1) / (2 * alpha - 2)
    replaced = (alpha - 0.5) / (alpha - 1) * there + back
    return min(plain, max(removed, replaced))


def _sampled_log_moment(z: float, rate: float, alpha: float) -> float:
    """(alpha - 1) times the divergence: convex in alpha, so interpolated between whole orders."""
    low = math.floor(alpha)
    at_low = _whole_log_moment(z, rate, low)
    if alpha == low:
        return at_low
    return at_low + (alpha - low) * (_whole_log_moment(z, rate, low + 1) - at_low)


@lru_cache(maxsize=2**16)
def _whole_log_moment(z: float, rate: float, order: int) -> float:
    """log E (1 - rate + rate * likelihood ratio)^order (Mironov, Talwar, Zhang 2019)."""
    j = np.arange(order + 1)
    terms = (
        gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
        + (order - j) * math.log1p(-rate) + j * math.log(rate)
        + (j * j - j) / (2 * z * z)
    )  # fmt: skip
    return max(0.0, float(logsumexp(terms)))


def pure_divergence(eps: float, alpha: float) -> float:
    """Order-alpha divergence of randomised response, the worst epsilon-private mechanism.

    The log moment is log(cosh((alpha - 1/2) eps) / cosh(eps / 2)), written without cancellation.
    """
    if alpha * eps > 1:
        return _log_cosh((alpha - 0.5) * eps, minus=eps / 2) / (alpha - 1)
    rise = 2 * math.sinh(alpha * eps / 2) * math.sinh((alpha - 1) * eps / 2) / math.cosh(eps / 2)
    return math.log1p(rise) / (alpha - 1)


def laplace_max_divergence(eps: float, alpha: float) -> float:
    """Order-alpha divergence of a maximum with Laplace noise: a bound.

    The likelihood ratio has mean 1, is at most e^eps and has a variance that is less than that of
    randomised response; the worst such ratio has two values. See docs/privacy/selection.md.
    """
    pure, order = pure_divergence(eps, alpha), max(alpha, 2.0)
    if not 0 < order * eps < _LARGEST_EXPONENT:
        return pure
    top = math.expm1(eps)
    variance = min((MOST_TIES * math.expm1(eps / 2)) ** 2, -math.expm1(-eps) * top)
    chance = variance / (variance + top * top)
    up = chance * math.expm1(order * eps)
    down = (1 - chance) * math.expm1(order * math.log1p(-variance / top))
    return min(pure, math.log1p(up + down + 2.0**-48 * (up - down)) / (order - 1))


def _log_cosh(x: float, minus: float) -> float:
    """log cosh(x) - log cosh(minus) for non-negative arguments of any size."""
    return (x - minus) + math.log1p(math.exp(-2 * x)) - math.log1p(math.exp(-2 * minus))


def bounded_range_divergence(eps: float, alpha: float) -> float:
    """Order-alpha divergence of the worst pair whose privacy loss has range eps.

    The loss takes the values t and t - eps. At the worst t the log moment is
    alpha psi(alpha eps) - (alpha - 1) psi((alpha - 1) eps) - psi(eps), where
    psi(x) = log(sinh(x / 2) / (x / 2)); see docs/privacy/accounting.md.
    """
    if alpha * eps > _SMALL:
        rest = (alpha - 1) * eps
        ratio = math.exp(-rest) * math.expm1(-eps) / math.expm1(-rest)
        slope = eps / 2 + math.log1p(ratio) + math.log1p(-1 / alpha)  # psi's last difference
        return (_psi(alpha * eps) - _psi(eps)) / (alpha - 1) + slope
    moment = 0.0
    for power, coefficient in _PSI_SERIES:  # alpha^m - (alpha - 1)^m - 1 without cancellation
        m = power + 1
        weight = -(alpha**m) * math.expm1(m * math.log1p(-1 / alpha)) - 1
        moment += coefficient * eps**power * weight
    return moment / (alpha - 1)


def _psi(x: float) -> float:
    """log(sinh(x / 2) / (x / 2)) for x > 0."""
    if x < _SMALL:
        return sum(coefficient * x**power for power, coefficient in _PSI_SERIES)
    return x / 2 + math.log(-math.expm1(-x) / x)
