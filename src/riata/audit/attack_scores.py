"""What a judge of privacy needs: a score for each of many fits on two neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.arguments import is_whole
from riata.audit.log_ratio import log_ratio
from riata.audit.witness import Data, Progress, Trial, WitnessedRelease
from riata.errors import InvalidArgument
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import spent
from riata.privacy.events import Event
from riata.vectors import Vector


@dataclass(frozen=True, eq=False)
class AttackScores:
    """Scores of fits on a data set and on its neighbour, beside what the fits claim.

    Attributes
    ----------
    in_scores, out_scores : ndarray of shape (draws,)
        One number for each fit on the data, and on the neighbour, which under add-remove lacks the
        row: how much likelier its releases were on the data, as a difference of log-probabilities.
        Larger speaks for the data.
    epsilon, delta : float
        The claim for the whole fit, at the model's own delta.
    in_releases, out_releases : ndarray of shape (draws, numbers), optional
        Everything that each fit released, in order, for judges with scores of their own. A fit
        that released fewer numbers than another has NaN at the end.
    event : Event
        What the claim is made from.
    """

    in_scores: np.ndarray
    out_scores: np.ndarray
    epsilon: float
    delta: float
    event: Event
    in_releases: np.ndarray | None = None
    out_releases: np.ndarray | None = None

    def claimed(self, delta: float) -> float:
        """The claimed epsilon at another delta."""
        return spent(self.event, delta).epsilon


def scores(
    model: Any,
    data: Data,
    neighbour: Data,
    *,
    draws: int = 1_000,
    releases: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
) -> AttackScores:
    """Fit a model many times on two neighbours and score each fit, for any judge.

    Rows are read, checked and put on the grid once, and the plan is made once; each draw runs the
    solver with fresh noise. Of the releases of each fit the two probabilities are known, since an
    auditor knows the exact sums on both sides; their log-ratio is the score. It is exact for the
    Gaussian, Laplace and exponential mechanisms, and a good guess for others: any score makes a
    valid audit, the exact one makes the strongest.

    Parameters
    ----------
    model : estimator
        Not changed, and its ledger is not charged: an audit is for rows that may be shown.
    data, neighbour : tuple of (X, y)
        They should differ in one row. Under add-remove, `neighbour` lacks it. `search_pair` and
        `worst_pair` make such pairs.
    draws : int, default=1_000
        How many fits are made on each data set.
    releases : bool, default=False
        Whether the released numbers are returned too.
    seed : int, optional
        Makes the scores reproducible.
    progress : callable, optional
        Is told the number of draws made so far.

    Examples
    --------
    >>> from riata import Bounds, PrivateLasso
    >>> from riata.audit import scores, worst_pair
    >>> model = PrivateLasso(epsilon=1.0, delta=1e-6, bounds=Bounds(x=1.0, y=1.0), steps=5)
    >>> pair = worst_pair(model, n_rows=20, n_features=3)
    >>> found = scores(model, pair.data, pair.neighbour, draws=10, seed=0)
    >>> found.in_scores.shape, found.epsilon <= 1.0
    ((10,), True)
    """
    if not is_whole(draws) or draws < 1:
        raise InvalidArgument(f"draws={draws!r} must be a whole number of at least 1.")
    trial, noise = Trial(model, data, neighbour), Noise(seed)
    found: tuple[list[float], list[float]] = ([], [])
    released: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for k in range(draws):
        for swapped, sign in ((False, 1), (True, -1)):
            run = trial.run(noise, swapped=swapped)
            found[swapped].append(sign * math.fsum(log_ratio(each) for each in run))
            if releases:
                released[swapped].append(_numbers(run))
        if progress is not None:
            progress(k + 1)
    claim = trial.plan.spent
    sides = (np.array(found[0]), np.array(found[1]), claim.epsilon, claim.delta, trial.plan.cost)
    return AttackScores(*sides, *(_table(released) if releases else (None, None)))


def _numbers(run: list[WitnessedRelease]) -> np.ndarray:
    """All that a fit released, as one list of numbers."""
    return np.concatenate([_as_array(release.released) for release in run])


def _as_array(released: Any) -> np.ndarray:
    if isinstance(released, Vector):
        return np.append(released.dense(), released.offset)
    return np.asarray(released, dtype=np.float64).ravel()


def _table(sides: tuple[list[np.ndarray], list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """A line for each fit, filled up with NaN."""
    width = max(len(line) for side in sides for line in side)

    def filled(side: list[np.ndarray]) -> np.ndarray:
        out = np.full((len(side), width), np.nan)
        for row, line in zip(out, side, strict=True):
            row[: len(line)] = line
        return out

    return filled(sides[0]), filled(sides[1])
