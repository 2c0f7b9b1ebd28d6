"""p-values that count how many tests there were."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from riata.errors import InvalidArgument
from riata.estimators.coefficients import Coefficients

#: What a summary uses unless somebody asks for another: it holds for any dependence.
CORRECTION = "by"

#: What is controlled, for people: of terms that are marked at a level.
MEANINGS = {
    "by": (
        "Benjamini-Yekutieli: on average at most {percent:g}% of the marked terms are 0 in truth, "
        "however the estimates depend on each other"
    ),
    "bh": (
        "Benjamini-Hochberg: on average at most {percent:g}% of the marked terms are 0 in truth, "
        "if the estimates are independent or positively dependent, which nobody has checked"
    ),
    "bonferroni": (
        "Bonferroni: with probability at most {percent:g}% any of the marked terms is 0 in truth, "
        "however the estimates depend on each other"
    ),
}


def check_correction(correction: str | None) -> None:
    """Raise unless it is one of `MEANINGS`, or None."""
    if correction is not None and correction not in MEANINGS:
        raise InvalidArgument(
            f"correction={correction!r} is not known. Use one of {[*MEANINGS]}, or None."
        )


def level_of_each(level: float, correction: str | None, shown: int, tested: int) -> float:
    """The level of a single interval, if all that are shown are to hold as often as `level` says.

    Of `tested` columns `shown` were selected because they look large, and so their intervals hold
    less often than those of columns that were named before. With a correction for the false
    discovery rate a part of at most 1 - level of the intervals that are shown misses its target on
    average (false coverage rate), if estimates are independent or positively dependent; with
    Bonferroni's none does with probability `level`.

    References
    ----------
    Benjamini, Yekutieli (2005). False discovery rate-adjusted multiple confidence intervals for
    selected parameters. Theorems 1 and 3.
    """
    check_correction(correction)
    if correction is None or not shown:
        return level
    together = 1 if correction == "bonferroni" else shown
    return 1 - (1 - level) * together / tested


def adjusted(p: np.ndarray, correction: str | None) -> np.ndarray:
    """The level at which each test would be marked; NaN for those whose p-value is NaN.

    Parameters
    ----------
    p : ndarray of shape (m,)
        NaN stands for no test, which counts for nothing.
    correction : {"by", "bh", "bonferroni"} or None
        None gives NaN for all.

    References
    ----------
    Benjamini, Hochberg (1995); Benjamini, Yekutieli (2001).
    """
    check_correction(correction)
    found = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    m = len(known)
    if correction is None or m == 0:
        return found
    if correction == "bonferroni":
        found[known] = np.minimum(m * p[known], 1.0)
        return found
    order = known[np.argsort(-p[known], kind="stable")]
    factor = float((1 / np.arange(1, m + 1)).sum()) if correction == "by" else 1.0
    stepped = np.minimum.accumulate(factor * m / np.arange(m, 0, -1) * p[order])
    found[order] = np.minimum(stepped, 1.0)
    return found


def p_values(found: Coefficients) -> np.ndarray:
    """Of each column that could be left out, whether it is 0; NaN where the error is unknown.

    1 for a column that was left out: the search looked at it, so it counts as a test. NaN for
    unpenalized columns: nobody looked for them.
    """
    p = np.where(found.values == 0, 1.0, math.nan)
    known = np.flatnonzero(found.known)
    p[known] = 2 * ndtr(-np.abs(found.values[known] / found.errors[known]))
    p[list(found.unpenalized)] = math.nan
    return p


def interval_level(found: list[Coefficients], level: float, correction: str | None) -> float:
    """The level of a single interval, by how many columns the search left out."""
    p = np.concatenate([p_values(each) for each in found]) if found else np.zeros(0)
    shown = sum(
        int(np.count_nonzero(each.known)) - int(each.known[list(each.unpenalized)].sum())
        for each in found
    )
    return level_of_each(level, correction, shown, int(np.count_nonzero(~np.isnan(p))))
