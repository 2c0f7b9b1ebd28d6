"""Private scales: quantiles of sizes, from noisy counts in bins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.curator import Curator
from riata.mechanisms import Mechanism
from riata.problem import Problem
from riata.queries import OfShortRows, ProblemQuery, RowLengths, Sizes
from riata.queries.sizes import PARTS, upper_edges
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.defaults import VISIBLE
from riata.solvers.empirical_bayes import QUIET, high_length
from riata.solvers.whitened_defaults import SAFE

#: Where noise is small the lengths of rows are counted in so many bins for each power of two: sums
#: of rows have noise in proportion to where a bin ends.
FINE = 8

#: Bins of lengths count if they exceed their noise so many times, and if so much of the rows is in
#: them. Then rows are shortened to the quantile that leaves out so many times the noise, which a
#: single bin of noise does not reach, but not to a lower one than this: what is shortened is lost.
SURE, MOST_ROWS_SEEN, LEFT_OUT, LEAST_QUANTILE = 3.5, 0.6, 5.0, 0.85


@dataclass(frozen=True)
class Scale:
    """The sizes that a release of counts shows, up to the largest possible size `top`."""

    top: float
    shares: np.ndarray
    edges: np.ndarray = field(default_factory=upper_edges)

    def end(self, q: float) -> float:
        """Where the bin ends that a part q of the sizes reaches."""
        below = np.cumsum(self.shares) / self.shares.sum()
        return float(self.top * self.edges[int(np.searchsorted(below, q - 1e-12))])

    def quantile(self, q: float, *, zeros: bool = True) -> float:
        """A size that is at least as large as a part q of them; `zeros` says if 0 is one."""
        edges = self.edges
        shares = self.shares if zeros else np.where(edges > 0, self.shares, 0.0)
        if shares.sum() == 0:
            return self.top
        below = np.cumsum(shares) / shares.sum()
        k = min(int(np.searchsorted(below, q - 1e-12)), len(edges) - 1)
        start = below[k - 1] if k else 0.0
        part = (q - start) / max(below[k] - start, 1e-12)
        lower = edges[max(k - 1, 1)]
        size = lower * (max(edges[k], lower) / lower) ** min(max(part, 0.0), 1.0)
        return float(self.top * size)


class CuratorOfShortRows:
    """A curator that is asked about rows as they are after they were shortened."""

    def __init__(self, curator: Curator, given: Bounds) -> None:
        self.curator, self.given = curator, given

    def release(self, query: ProblemQuery, mechanism: Mechanism) -> Any:
        return self.curator.release(OfShortRows(query, self.given), mechanism)


#: What a solver asks.
AnyCurator = Curator | CuratorOfShortRows


def short_rows(
    problem: Problem, curator: Curator, mechanism: Mechanism
) -> tuple[Problem, AnyCurator]:
    """The problem with the length that most rows have for a bound, and whom to ask about it.

    The noise of sums of rows grows with their bound. A length that is lost in noise is taken on its
    large side, so that rows are not shortened by mistake.
    """
    noise = noise_std(mechanism, RowLengths(problem))
    query = RowLengths(problem, FINE if noise < QUIET else PARTS)
    counts = curator.release(query, mechanism)
    seen = np.where(counts > SURE * noise, counts, 0.0)
    # Rows of zeros have no length to keep.
    rest, seen = max(1 - float(seen[0]), noise), np.where(query.edges > 0, seen, 0.0)
    if seen.sum() > MOST_ROWS_SEEN * rest:
        part = Scale(1.0, seen, query.edges).end(max(1 - LEFT_OUT * noise / rest, LEAST_QUANTILE))
    else:
        part = high_length(counts, noise, query.edges, 1 - SAFE)
    tighter = problem.bounds.shortened(part * query.top) if part < 1 else problem.bounds
    if tighter is problem.bounds:
        return problem, curator
    return replace(problem, bounds=tighter), CuratorOfShortRows(curator, problem.bounds)


def released_scale(query: Sizes, mechanism: Mechanism, curator: AnyCurator) -> Scale:
    """The shares of the bins that stand out from the noise."""
    counts = curator.release(query, mechanism)
    noise = noise_std(mechanism, query)
    return Scale(query.top, np.where(counts > VISIBLE * noise, counts, 0.0), query.edges)
