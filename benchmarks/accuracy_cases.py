"""The synthetic suite: designs, sizes and truths that no default may be tuned beyond.

Every case draws its rows, its sparse truth and its noise from a seed. `excess` is what a model
loses against the truth on fresh rows, in units of the variance that the truth explains: 0 is
perfect and the model that always predicts 0 has 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from riata import Bounds

#: Fresh rows that models are judged on.
FRESH_ROWS = 4_000

#: Correlated columns come in blocks of this many.
BLOCK = 10


@dataclass(frozen=True)
class Case:
    """A design, its size, the number of columns that matter and the noise of the target."""

    design: str
    n: int
    p: int
    s: int
    noise: float

    @property
    def name(self) -> str:
        return f"{self.design}, n {self.n:,}, p {self.p:,}, s {self.s}, noise {self.noise:g}"

    @property
    def bounds(self) -> Bounds:
        wide = self.design in ("gaussian", "block", "equicorrelated")
        return Bounds(x=4.0, y=2.0) if wide else Bounds(x=1.0, y=1.0)

    def draw(self, seed: int) -> Sample:
        rng = np.random.default_rng([seed, self.n, self.p, self.s, len(self.design)])
        theta = np.zeros(self.p)
        chosen = rng.choice(self.p, self.s, replace=False)
        theta[chosen] = rng.uniform(0.5, 1.5, self.s) * rng.choice([-1.0, 1.0], self.s)
        theta /= np.abs(theta).sum()
        x, fresh = (self._rows(rng, n) for n in (self.n, FRESH_ROWS))
        y = x @ theta + self.noise * rng.standard_normal(self.n)
        limit = self.bounds.y
        return Sample(self, x, np.clip(y, -limit, limit), theta, fresh)

    def _rows(self, rng: np.random.Generator, n: int) -> Any:
        if self.design == "uniform":
            return rng.uniform(-1, 1, (n, self.p))
        if self.design == "rademacher":
            return rng.integers(0, 2, (n, self.p)) * 2.0 - 1.0
        if self.design == "binary":
            return (rng.random((n, self.p), dtype=np.float32) < 0.3).astype(np.float64)
        if self.design == "sparse binary":
            return sparse.random_array(
                (n, self.p),
                density=0.02,
                format="csr",
                rng=rng,
                data_sampler=lambda size: np.ones(size),
            )
        x = rng.standard_normal((n, self.p))
        if self.design == "block":
            common = rng.standard_normal((n, -(-self.p // BLOCK)))
            x *= np.sqrt(0.2)
            x += np.sqrt(0.8) * np.repeat(common, BLOCK, axis=1)[:, : self.p]
        elif self.design == "equicorrelated":
            x *= np.sqrt(0.5)
            x += np.sqrt(0.5) * rng.standard_normal((n, 1))
        return np.clip(x, -4, 4, out=x)


@dataclass(frozen=True)
class Sample:
    """Rows to fit, the truth behind them, and fresh rows to judge models on."""

    case: Case
    x: Any
    y: np.ndarray
    theta: np.ndarray
    fresh: Any

    def excess(self, coef: np.ndarray, intercept: float = 0.0) -> float:
        truth = self.fresh @ self.theta
        return float(np.mean((self.fresh @ coef + intercept - truth) ** 2) / np.mean(truth**2))


CASES = (
    Case("uniform", 5_000, 1_000, 5, 0.1),
    Case("uniform", 10_000, 1_000, 5, 0.1),
    Case("uniform", 20_000, 1_000, 10, 0.1),
    Case("uniform", 10_000, 1_000, 5, 0.5),
    Case("uniform", 100_000, 50, 20, 0.3),
    Case("rademacher", 10_000, 1_000, 20, 0.1),
    Case("rademacher", 20_000, 10_000, 10, 0.1),
    Case("binary", 20_000, 2_000, 10, 0.1),
    Case("sparse binary", 100_000, 20_000, 10, 0.05),
    Case("gaussian", 20_000, 1_000, 10, 0.3),
    Case("gaussian", 100_000, 200, 20, 0.3),
    Case("block", 20_000, 1_000, 10, 0.1),
    Case("block", 50_000, 2_000, 20, 0.3),
    Case("equicorrelated", 20_000, 1_000, 10, 0.1),
    Case("equicorrelated", 10_000, 50, 5, 0.1),
)
