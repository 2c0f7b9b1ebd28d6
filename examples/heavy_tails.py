"""Sparse regression on claims with heavy tails.

There is no natural bound on an entry, and the largest entry of all rows would be a release. Entries
are truncated at a level that follows from public facts; this biases rare large values a little.
"""

from __future__ import annotations

import numpy as np

from riata import HeavyTailedRegression
from riata.solvers import PrivatePeeling


def claims(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(5, (n, 300))
    return X, 0.6 * X[:, 3] - 0.6 * X[:, 7] + rng.standard_t(5, n)


def main() -> None:
    X, y = claims(40_000, seed=0)
    # Entries have a size of about 1: that is public here, and so is this step.
    solver = PrivatePeeling(step_size=0.2, steps=6)
    model = HeavyTailedRegression(2.0, 1e-6, scale=1.0, sparsity=2, radius=1.5, solver=solver)
    print(model.plan(*X.shape))
    model.fit(X, y)
    chosen = np.flatnonzero(model.coef_)
    print(f"entries are cut at {model.truncation_:.2f}; the largest is kept secret")
    print(f"columns {chosen.tolist()}, coefficients {model.coef_[chosen].round(2).tolist()}")


if __name__ == "__main__":
    main()
