"""A model for 2,000 columns, from data that is only available as 40 random projections.

The matrix is public, so it protects nothing: the budget does. Rows are clipped after the
projection, and the model is lifted back to all columns at no cost.
"""

from __future__ import annotations

import numpy as np

from riata import Bounds, ProjectedRegression
from riata.projections import StructuredProjection


def main() -> None:
    rng = np.random.default_rng(0)
    n, p = 20_000, 2_000
    factors = rng.standard_normal((n, 5))  # columns that move together survive a projection
    X = factors @ rng.standard_normal((5, p)) / np.sqrt(5 * p)
    y = factors @ [0.5, -0.5, 0.3, 0.0, 0.0]
    projection = StructuredProjection(40, p, seed=2026)
    kept = projection.rows(X)
    del X
    model = ProjectedRegression(
        epsilon=2.0,
        delta=1e-6,
        bounds=Bounds(x=1.5, y=2.0, norm="l2"),
        radius=20.0,
        projection=projection,
        compressed=True,
        fit_intercept=False,
    )
    print(model.plan(*kept.shape))
    model.fit(kept[:15_000], y[:15_000])
    print(f"{model.coef_.size} coefficients, {np.count_nonzero(model.coef_)} of them not 0")
    print(f"R2 on new compressed rows: {model.score(kept[15_000:], y[15_000:]):.3f}")


if __name__ == "__main__":
    main()
