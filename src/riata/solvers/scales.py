"""Private scales: quantiles of sizes, from noisy counts in bins."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from riata.curator import Curator
from riata.mechanisms import Mechanism
from riata.queries import Sizes
from riata.queries.sizes import upper_edges
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.defaults import VISIBLE


@dataclass(frozen=True)
class Scale:
    """The sizes that a release of counts shows, up to the largest possible size `top`."""

    top: float
    shares: np.ndarray
    edges: np.ndarray = field(default_factory=upper_edges)

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


def released_scale(query: Sizes, mechanism: Mechanism, curator: Curator) -> Scale:
    """The shares of the bins that stand out from the noise."""
    counts = curator.release(query, mechanism)
    noise = noise_std(mechanism, query)
    return Scale(query.top, np.where(counts > VISIBLE * noise, counts, 0.0), query.edges)
