"""p-values that count how many tests there were."""

from __future__ import annotations

import numpy as np

from riata.errors import InvalidArgument

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
