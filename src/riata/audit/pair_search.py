"""A search for the neighbours that change a whole fit most, and not its first release only.

Where a fit goes, and so which rows change it most, depends on the rows themselves. The search goes
back and forth: it runs the fit, sees which pair of candidate rows would have changed the releases
most, and runs it again with this pair; for several kinds of rows beside the pair, which decide how
sure the fit is of its way. At last single entries of the pair are changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.arguments import is_whole
from riata.audit.backgrounds import backgrounds, inside
from riata.audit.distances import realised_by_pairs
from riata.audit.grey_box import measured
from riata.audit.pairs import (
    Neighbours,
    exchangeable,
    extreme_rows,
    extreme_targets,
    first_problem,
    labels_of,
    worst_pair,
)
from riata.audit.witness import Data, Progress, Trial, WitnessedRelease
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.mechanisms.noise import Noise
from riata.privacy.budget import ADD_REMOVE
from riata.public import public_normals
from riata.vectors import Vector

#: How often a pair is chosen anew for one background, and how often entries are changed.
_ROUNDS, _CHANGES = 3, 6

#: How many candidate rows are compared at once, and how many of them have random signs.
_POOL, _RANDOM = 80, 8

#: The seeds of the noise: those that the search sees, and others that its result is stated for.
_FRESH = 10_000


@dataclass(frozen=True, eq=False)
class SearchedPair(Neighbours):
    """Neighbours that were searched for, and what a whole fit realises of its claim on them.

    Attributes
    ----------
    data, neighbour : tuple of (X, y)
    ratio : float
        The largest ratio of any release, over fits with fresh noise.
    share : float
        Realised over claimed epsilon of the whole fit: the mean over fits with fresh noise, which
        the search has not seen.
    first_share : float
        The same for `worst_pair`, which looks at the first release only. Where it is larger, that
        pair is the result.
    background : str
        What the rows beside the pair are.
    sound : bool
        Whether no release of any fit of the search exceeded its claim, in exact arithmetic.
    """

    share: float
    first_share: float
    background: str
    sound: bool


def search_pair(
    model: Any,
    n_rows: int,
    n_features: int,
    *,
    tries: int = 60,
    runs: int = 3,
    progress: Progress | None = None,
) -> SearchedPair:
    """Search for the neighbours whose exchange shows most in all releases of a fit together.

    Parameters
    ----------
    model : estimator
        Not changed, and its ledger is not charged.
    n_rows, n_features : int
        With more rows a fit is surer of its way, and a pair can be chosen for it.
    tries : int, default=60
        The number of pairs that are tried at most.
    runs : int, default=3
        The number of fits that each pair is tried on. Their noise is fixed, so the search finds
        the same pair every time.
    progress : callable, optional
        Is told the number of pairs tried so far.
    """
    for name, value, least in (("n_rows", n_rows, 2), ("tries", tries, 1), ("runs", runs, 1)):
        if not is_whole(value) or value < least:
            raise InvalidArgument(f"{name}={value!r} must be a whole number of at least {least}.")
    search = _Search(model, n_rows, n_features, runs, progress)
    for name, rest in backgrounds(search.problem, search.targets, n_rows - 1):
        search.settle(name, rest, max(1, tries - _CHANGES))
    search.refine(tries)
    return search.result()


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A pair among other rows, and the fits that it was tried on."""

    background: str
    rest: Data
    x: np.ndarray
    y: np.ndarray
    runs: list[list[WitnessedRelease]]
    share: float
    worst: float


class _Search:
    def __init__(
        self, model: Any, n_rows: int, n_features: int, runs: int, progress: Progress | None
    ) -> None:
        self.model, self.n_rows, self.n_features = model, n_rows, n_features
        self.seeds, self.progress, self.attempts = range(runs), progress, 0
        self.problem = first_problem(model, n_rows, n_features)
        self.targets = extreme_targets(self.problem)
        self.first = worst_pair(model, n_rows, n_features)
        self.trial = Trial(model, self.first.data, self.first.neighbour)
        self.best: _Candidate | None = None
        self.sound = True
        self.start = self._furthest([self.trial.run(Noise(seed)) for seed in self.seeds])

    def settle(self, background: str, rest: Data, tries: int) -> None:
        """Go back and forth between a fit and the pair that changes it most."""
        if self.attempts == tries:
            return
        found = self._try(background, rest, *self.start)
        for _ in range(min(_ROUNDS, tries - self.attempts)):
            before = found
            found = self._try(background, rest, *self._furthest(found.runs, found))
            if found.share <= before.share:
                break

    def refine(self, tries: int) -> None:
        """Change single entries of the best pair."""
        for _ in range(min(_CHANGES, tries - self.attempts)):
            before = self.best
            assert before is not None
            x, y = self._changed(before)
            self._try(before.background, before.rest, *self._best_of(before.runs, x, y))
            if self.best is before:
                break

    def result(self) -> SearchedPair:
        best = self.best
        assert best is not None
        fresh = range(_FRESH, _FRESH + len(self.seeds) + 2)
        pair, first = self._neighbours(best.rest, best.x, best.y), self.first
        _, share, worst = self._replayed(*pair, fresh)
        _, first_share, first_worst = self._replayed(first.data, first.neighbour, fresh)
        found = (*pair, worst, share, first_share, best.background)
        if first_share > share:
            pair = first.data, first.neighbour
            found = (*pair, first_worst, first_share, first_share, "those of worst_pair")
        return SearchedPair(*found, self.sound)

    def _try(self, background: str, rest: Data, x: np.ndarray, y: np.ndarray) -> _Candidate:
        runs, share, worst = self._replayed(*self._neighbours(rest, x, y), self.seeds)
        found = _Candidate(background, rest, x, y, runs, share, worst)
        if self.best is None or share > self.best.share:
            self.best = found
        self.attempts += 1
        if self.progress is not None:
            self.progress(self.attempts)
        return found

    def _replayed(
        self, data: Data, neighbour: Data, seeds: range
    ) -> tuple[list[list[WitnessedRelease]], float, float]:
        trial = Trial(self.model, data, neighbour, like=self.trial)
        runs = [trial.run(Noise(seed)) for seed in seeds]
        found = [measured(run, trial.plan) for run in runs]
        self.sound &= all(each.sound for each in found)
        share = float(np.mean([each.ratio for each in found]))
        return runs, share, max(each.worst for each in found)

    def _neighbours(self, rest: Data, x: np.ndarray, y: np.ndarray) -> tuple[Data, Data]:
        def with_row(i: int) -> Data:
            rows = np.vstack([x[i : i + 1], rest[0]])
            return rows, labels_of(self.model, np.append(y[i], rest[1]))

        if self.problem.adjacency != ADD_REMOVE:
            return with_row(0), with_row(1)
        return with_row(0), (rest[0], labels_of(self.model, rest[1]))

    # Which pair

    def _furthest(self, runs: list[list[WitnessedRelease]], now: _Candidate | None = None) -> Data:
        sources = [self._common_rows(), *(self._rows_for(theta) for theta in _models(runs))]
        x = np.vstack([_spread(rows, _POOL // len(sources)) for rows in sources])
        x, y = np.repeat(x, 2, axis=0), np.tile(self.targets, len(x))
        if now is not None:
            x, y = np.vstack([now.x, x]), np.append(now.y, y)
        return self._best_of(runs, x, y)

    def _best_of(self, runs: list[list[WitnessedRelease]], x: np.ndarray, y: np.ndarray) -> Data:
        """The two of these rows, or the one, that the runs would have shown most."""
        plan = self.trial.plan
        loaded = self.model.request(x, labels_of(self.model, y))[1].load()
        alone = self.problem.adjacency == ADD_REMOVE
        places = [slice(i, i + 1) for i in range(len(x))] + [slice(0)] * alone
        engines = [plan.engine(LocalEngine, *(part[at] for part in loaded)) for at in places]
        realised = realised_by_pairs(runs, plan, engines)
        if alone:
            i = int(np.argmax(realised[-1, :-1]))
            return x[[i]], y[[i]]
        realised = np.where(exchangeable(self.problem, x), realised, -1.0)
        two = list(divmod(int(np.argmax(realised)), len(x)))
        return x[two], y[two]

    def _common_rows(self) -> np.ndarray:
        size = self.n_features
        signs = np.sign(public_normals((_RANDOM, size), "riata audit candidates"))
        half = np.vstack([np.ones((1, size)), np.eye(size)[: 2 * _RANDOM], signs])
        return inside(self.problem, np.vstack([np.zeros((1, size)), half, -half]))

    def _rows_for(self, theta: Vector) -> np.ndarray:
        """Rows that follow, or oppose, a model that a query was asked at."""
        if theta.size == self.n_features:
            return extreme_rows(self.problem, theta)[0]
        projection = self.trial.plan.projection
        if projection is None:
            return np.zeros((0, self.n_features))
        back = np.array([projection.back(v) for v in (theta.dense(), *np.eye(theta.size))])
        return inside(self.problem, np.vstack([back, -back]))

    def _changed(self, now: _Candidate) -> tuple[np.ndarray, np.ndarray]:
        """The pair, and each of its rows with one entry changed."""
        limit = self.problem.bounds.per_column(self.n_features)
        x, y = list(now.x), list(now.y)
        for row, target in zip(now.x, now.y, strict=True):
            for column in range(min(self.n_features, _POOL // 4)):
                for value in (-1.0, 0.0, 1.0):
                    other = row.copy()
                    other[column] = value * limit[column]
                    x.append(inside(self.problem, other[None], whole=False)[0])
                    y.append(target)
        return np.array(x), np.array(y)


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the rows, from all over the list."""
    rows = np.unique(rows, axis=0)
    return rows[np.unique(np.linspace(0, len(rows) - 1, most).astype(int))] if len(rows) else rows


def _models(runs: list[list[WitnessedRelease]]) -> list[Vector]:
    """The models that queries were asked at: the first, one half way and the last of each run."""
    found = []
    for run in runs:
        known = [theta for release in run if (theta := release.query.model) is not None]
        found += [known[k] for k in {0, len(known) // 2, len(known) - 1} if known]
    return found
