"""A lower bound on epsilon from releases alone.

If a release is (epsilon, delta)-private then P(E) <= exp(epsilon) P'(E) + delta for every event E
and every pair of neighbours. So an event that is seen often on one data set and rarely on its
neighbour proves that epsilon is at least log((P(E) - delta) / P'(E)).

The draws are split. On the first part the outputs are ranked by how much more likely they are on
one data set, and the event (the most telling outputs) is the one with the best bound. On the rest
this one event is counted, and Clopper-Pearson limits turn the two counts into a bound that is too
large with probability at most `failure`. Nothing is assumed about the mechanism, so a sound one is
accused with no more than that probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from riata.audit.attack_scores import scores
from riata.audit.witness import Data, Progress
from riata.errors import InvalidArgument
from riata.wording import number_of

#: Numeric outputs are sorted into this many bins of equal weight.
_BINS = 50

#: The part of the draws that chooses the event: little if only a threshold is to be found.
_LEARN, _LEARN_ORDERED = 0.5, 0.1


@dataclass(frozen=True)
class Curve:
    """Lower bounds on epsilon beside the claims, one for each delta.

    Attributes
    ----------
    deltas, lower, claimed : tuple of float
        At each delta, the smallest epsilon that the releases leave possible, and the claim.
    failure : float
        The probability that any of the lower bounds is too large.
    draws : int
        The number of fits on each data set.
    """

    deltas: tuple[float, ...]
    lower: tuple[float, ...]
    claimed: tuple[float, ...]
    failure: float
    draws: int

    @property
    def sound(self) -> bool:
        """Whether no lower bound exceeds its claim."""
        return all(low <= high for low, high in zip(self.lower, self.claimed, strict=True))

    @property
    def ratio(self) -> float:
        """The largest share of a claim that was shown to be spent."""
        return max(low / high for low, high in zip(self.lower, self.claimed, strict=True))

    def __str__(self) -> str:
        rows = zip(self.deltas, self.lower, self.claimed, strict=True)
        lines = [
            f"  delta {delta:<8g} epsilon at least {low:.4f}, claimed {high:.4f}"
            for delta, low, high in rows
        ]
        verdict = "consistent with the claim" if self.sound else "THE CLAIM IS REFUTED"
        head = (
            f"{number_of(self.draws, 'fit')} on each side: {verdict} (false alarm below "
            f"{self.failure:g})"
        )
        return "\n".join([head, *lines])


def lower_bound(
    model: Any,
    data: Data,
    neighbour: Data,
    *,
    draws: int = 100_000,
    deltas: Sequence[float] | None = None,
    failure: float = 1e-6,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Curve:
    """Attack a fit: decide from its releases which of two neighbours it was made from.

    Each fit's whole transcript is turned into one number, the log-ratio of its probabilities on
    the two data sets, which is the best evidence there is.

    Parameters
    ----------
    model, data, neighbour, draws, seed, progress
        As for `scores`.
    deltas : sequence of float, optional
        Where to compare with the claim. By default the model's own delta.
    failure : float, default=1e-6
        The probability with which a sound model may be accused.
    """
    found = scores(model, data, neighbour, draws=draws, seed=seed, progress=progress)
    deltas = tuple(deltas) if deltas is not None else (found.delta,)
    ours, theirs = found.in_scores, found.out_scores
    if len(np.unique(np.round(ours, 9))) <= _BINS:  # few outcomes: each is a category of its own
        ours, theirs = (np.rint(side * 1e9).astype(np.int64) for side in (ours, theirs))
    each = failure / len(deltas)
    lower = tuple(
        epsilon_lower_bound(ours, theirs, delta, failure=each, ordered=True) for delta in deltas
    )
    claimed = tuple(found.claimed(delta) for delta in deltas)
    return Curve(deltas, lower, claimed, failure, draws)


def epsilon_lower_bound(
    ours: Any, theirs: Any, delta: float = 0.0, *, failure: float = 1e-6, ordered: bool = False
) -> float:
    """The smallest epsilon that outputs on two neighbours leave possible, at `delta`.

    Parameters
    ----------
    ours, theirs : array-like of shape (draws,)
        Independent outputs on each data set: whole numbers are categories, floats are sorted
        into bins.
    delta : float, default=0.0
    failure : float, default=1e-6
        The probability that the bound is too large.
    ordered : bool, default=False
        Whether larger outputs are known to speak for `ours`. If not, the first part of the draws
        must also find out which outputs do.
    """
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    learn_part = _LEARN_ORDERED if ordered else _LEARN
    first = int(learn_part * len(ours)), int(learn_part * len(theirs))
    if min(first) < 1:
        raise InvalidArgument("An audit needs draws on both sides: pass at least 10 for each.")
    labels = _labelling(np.concatenate([ours[: first[0]], theirs[: first[1]]]))
    ours, theirs = labels(ours), labels(theirs)
    width = 1 + int(max(ours.max(), theirs.max()))
    learn = _counts(ours[: first[0]], width), _counts(theirs[: first[1]], width)
    test = _counts(ours[first[0] :], width), _counts(theirs[first[1] :], width)

    best, choice = -np.inf, (0, 1, np.array([0]))
    for one, other in ((0, 1), (1, 0)):
        a, b = (learn[k] * (test[k].sum() / learn[k].sum()) for k in (one, other))
        ranked = np.argsort(-(a + 0.5) / (b + 0.5), kind="stable")
        if ordered:
            ranked = np.arange(width)[:: -1 if one == 0 else 1]
        hits = np.floor(np.cumsum(a[ranked])), np.ceil(np.cumsum(b[ranked]))
        bounds = _bound(hits[0], test[one].sum(), hits[1], test[other].sum(), delta, failure)
        k = int(np.argmax(bounds))
        if bounds[k] > best:
            best, choice = bounds[k], (one, other, ranked[: k + 1])
    one, other, event = choice
    a, b = test[one], test[other]
    return max(0.0, float(_bound(a[event].sum(), a.sum(), b[event].sum(), b.sum(), delta, failure)))


def _labelling(learned: np.ndarray) -> Any:
    """A map from outputs to whole numbers, fixed by the first part of the draws."""
    if np.issubdtype(learned.dtype, np.integer):
        known = np.unique(learned)  # anything new is one more category
        return lambda values: np.where(
            np.isin(values, known), np.searchsorted(known, values), len(known)
        )
    edges = np.unique(np.quantile(learned, np.linspace(0, 1, _BINS + 1)[1:-1]))
    return lambda values: np.searchsorted(edges, values)


def _counts(labels: np.ndarray, width: int) -> np.ndarray:
    return np.bincount(labels, minlength=width)


def _bound(
    hits: Any, draws: int, other_hits: Any, other_draws: int, delta: float, failure: float
) -> Any:
    """log((P - delta) / P'), from below: each limit fails with half of `failure`."""
    low = np.where(hits > 0, beta.ppf(failure / 2, np.maximum(hits, 1), draws - hits + 1), 0.0)
    rest = np.maximum(other_draws - other_hits, 0)
    high = np.where(rest > 0, beta.isf(failure / 2, other_hits + 1, np.maximum(rest, 1)), 1.0)
    return np.log(np.maximum(low - delta, 1e-300)) - np.log(high)
