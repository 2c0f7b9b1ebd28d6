"""A lower bound on epsilon from outputs alone.

If a release is (epsilon, delta)-private then P(E) <= exp(epsilon) P'(E) + delta for every event E
and every pair of neighbours. So an event that is seen often on one data set and rarely on its
neighbour proves that epsilon is at least log((P(E) - delta) / P'(E)).

The draws are split. On the first half the outputs are ranked by their estimated likelihood ratio,
and the event (the most telling outputs, for one data set against the other) is the one with the
best bound. On the second half this one event is counted, and Clopper-Pearson limits turn the two
counts into a bound that is too large with probability at most `FAILURE`. Nothing is assumed about
the mechanism, so a sound one is accused with no more than that probability.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

from riata.curator import Curator
from riata.mechanisms.noise import Noise
from riata.privacy.events import compose

#: The probability that one audit accuses a sound mechanism. With fewer than a thousand audits the
#: whole suite stays below 1e-6.
FAILURE = 1e-9

#: Numeric outputs are sorted into this many bins of equal weight.
BINS = 50


def epsilon_lower_bound(ours, theirs, delta=0.0):
    """The smallest epsilon that the outputs on two neighbours leave possible, at `delta`.

    Parameters
    ----------
    ours, theirs : array-like of shape (draws,)
        Independent outputs on each data set: whole numbers are categories, floats are sorted
        into bins.
    """
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    first = len(ours) // 2, len(theirs) // 2
    labels = _labelling(np.concatenate([ours[: first[0]], theirs[: first[1]]]))
    ours, theirs = labels(ours), labels(theirs)
    width = 1 + max(ours.max(), theirs.max())
    learn = _counts(ours[: first[0]], width), _counts(theirs[: first[1]], width)
    test = _counts(ours[first[0] :], width), _counts(theirs[first[1] :], width)

    best, choice = -np.inf, None
    for one, other in ((0, 1), (1, 0)):
        a, b = learn[one], learn[other]
        ranked = np.argsort(-(a + 0.5) / (b + 0.5), kind="stable")
        bounds = _bound(np.cumsum(a[ranked]), a.sum(), np.cumsum(b[ranked]), b.sum(), delta)
        k = int(np.argmax(bounds))
        if bounds[k] > best:
            best, choice = bounds[k], (one, other, ranked[: k + 1])
    one, other, event = choice
    a, b = test[one], test[other]
    return max(0.0, float(_bound(a[event].sum(), a.sum(), b[event].sum(), b.sum(), delta)))


def _labelling(learned):
    """A map from outputs to whole numbers, fixed by the first half of the draws."""
    if np.issubdtype(learned.dtype, np.integer):
        known = np.unique(learned)  # anything new is one more category
        return lambda values: np.where(
            np.isin(values, known), np.searchsorted(known, values), len(known)
        )
    edges = np.unique(np.quantile(learned, np.linspace(0, 1, BINS + 1)[1:-1]))
    return lambda values: np.searchsorted(edges, values)


def _counts(labels, width):
    return np.bincount(labels, minlength=width)


def _bound(hits, draws, other_hits, other_draws, delta):
    """log((P - delta) / P'), from below: each limit fails with half of `FAILURE`."""
    low = np.where(hits > 0, beta.ppf(FAILURE / 2, np.maximum(hits, 1), draws - hits + 1), 0.0)
    rest = other_draws - other_hits
    high = np.where(rest > 0, beta.isf(FAILURE / 2, other_hits + 1, np.maximum(rest, 1)), 1.0)
    return np.log(np.maximum(low - delta, 1e-300)) - np.log(high)


def releases(mechanism, query, engine, draws, seed, adjacency="replace-one"):
    """`draws` releases of one query through a curator that has been paid for them."""
    curator = Curator.open(
        compose((mechanism.event, draws)),
        read=lambda: engine,
        noise=Noise(seed),
        adjacency=adjacency,
    )
    return np.array([curator.release(query, mechanism) for _ in range(draws)])
