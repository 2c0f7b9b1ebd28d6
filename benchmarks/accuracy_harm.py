"""What a default fit loses where there is nothing to learn, for every path of "auto".

Targets have nothing to do with the rows. A model's loss on fresh rows is compared with that of the
best constant, and with that of the centre of the public bounds, which needs no data: R2 for
numbers, nats for classes and counts. The best constant is not private: "mean alone" is what the
noise of a private mean with the whole budget would cost, or the centre if that is less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from riata import Bounds, PrivateLasso, PrivateLogisticRegression, PrivatePoissonRegression
from riata.privacy import Budget
from riata.solvers.calibrated import gaussian_mechanisms

#: Rows that the models are judged on.
FRESH = 2_000

#: The mean and the spread of numbers, as parts of their bound: in the middle, or all at one end,
#: as amounts of money are.
TARGETS = {"middle": (0.2, 0.25), "end": (-0.75, 0.13)}

#: The mean of counts, which are at most 10.
COUNT = 3.0


@dataclass(frozen=True)
class NullCase:
    """A shape of rows, their bounds, and targets that have nothing to do with them.

    `targets` is a name of `TARGETS`, "counts", or the frequencies of the classes.
    """

    name: str
    path: str
    n: int
    p: int
    rows: str = "dense"
    norm: str = "l2"
    targets: Any = "middle"
    delta: float = 1e-6
    epsilons: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 8.0)

    @property
    def classifies(self) -> bool:
        return isinstance(self.targets, tuple)

    @property
    def bounds(self) -> Bounds:
        y = None if self.classifies else 10.0 if self.targets == "counts" else 1.0
        if self.norm == "nonzeros":
            return Bounds(1.0, y, nonzeros=max(self.p // 20, 5))
        if self.rows == "text":
            return Bounds(1.0, y, norm="l2", nonnegative=True)
        return Bounds(1.0, y, norm=self.norm)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        x = SHAPES[self.rows](n, self.p, self.norm, rng)
        if self.classifies:
            y = rng.choice(len(self.targets), n, p=self.targets).astype(float)
        elif self.targets == "counts":
            y = rng.poisson(COUNT, n).astype(float)
        else:
            mean, spread = TARGETS[self.targets]
            y = np.clip(mean + spread * rng.standard_normal(n), -1, 1)
        return x, y

    def model(self, epsilon: float, seed: int) -> Any:
        facts = {"delta": self.delta, "bounds": self.bounds, "random_state": seed}
        if self.classifies:
            classes = np.arange(float(len(self.targets)))
            return PrivateLogisticRegression(epsilon, classes=classes, **facts)
        kind = PrivatePoissonRegression if self.targets == "counts" else PrivateLasso
        return kind(epsilon, **facts)


def _dense(n: int, p: int, norm: str, rng: np.random.Generator) -> np.ndarray:
    """Columns with a common factor, and entries up to 1 or rows up to that length."""
    x = 0.6 * rng.standard_normal((n, 1)) + rng.standard_normal((n, p))
    return np.clip(x / (2.0 * p**0.5 if norm == "l2" else 3.0), -1, 1)


def _text(n: int, p: int, norm: str, rng: np.random.Generator) -> Any:
    """Rows of length 1 with about ten words each, whose frequencies fall as 1 / rank."""
    often = 1 / (1 + np.arange(p))
    words = rng.choice(p, (n, 10), p=often / often.sum())
    cells = (np.ones(words.size), (np.repeat(np.arange(n), 10), words.ravel()))
    x = sparse.csr_array(cells, shape=(n, p))
    return sparse.csr_array(x.multiply(1 / np.sqrt(x.multiply(x).sum(axis=1))[:, None]))


def _flags(n: int, p: int, norm: str, rng: np.random.Generator) -> Any:
    """One column in twenty is 1, a few of them often."""
    places = rng.beta(0.5, 2.0, (n, max(p // 20, 5)))
    rows = np.repeat(np.arange(n), places.shape[1])
    x = sparse.csr_array((np.ones(places.size), (rows, (places.ravel() * p).astype(int))),
                         shape=(n, p))  # fmt: skip
    x.data[:] = 1.0
    if norm == "l2":
        x.data[:] = 1 / math.sqrt(places.shape[1])
    return x


SHAPES: dict[str, Callable[..., Any]] = {"dense": _dense, "text": _text, "flags": _flags}

_HALF, _RARE, _THREE, _FIVE = (0.5, 0.5), (0.9, 0.1), (0.6, 0.3, 0.1), (0.4, 0.3, 0.15, 0.1, 0.05)

CASES = [
    NullCase("numbers 1,000 x 8", "averaged, whitened", 1_000, 8),
    NullCase("numbers 2,000 x 100", "averaged, whitened", 2_000, 100),
    NullCase("amounts 4,000 x 6", "averaged, whitened", 4_000, 6, targets="end"),
    NullCase("numbers 4,000 x 20, entries", "averaged, whitened", 4_000, 20, norm="inf"),
    NullCase("classes 1,500 x 12", "averaged, whitened", 1_500, 12, targets=_HALF),
    NullCase("rare class 4,000 x 20", "averaged, whitened", 4_000, 20, targets=_RARE),
    NullCase("rare class, entries", "averaged, whitened", 4_000, 20, norm="inf", targets=_RARE),
    NullCase("three classes 2,000 x 10", "softmax", 2_000, 10, targets=_THREE),
    NullCase("counts 3,000 x 10", "averaged, whitened", 3_000, 10, targets="counts"),
    NullCase("counts, entries", "averaged, whitened", 3_000, 10, norm="inf", targets="counts"),
    NullCase("numbers 2,500 x 600, flags", "scaled", 2_500, 600, "flags"),
    NullCase("classes 2,500 x 600, nonzeros", "scaled", 2_500, 600, "flags", "nonzeros", _RARE),
    NullCase("numbers 1,000 x 600", "noisy gradient", 1_000, 600, "text"),
    NullCase("text 1,500 x 1,000", "class sums", 1_500, 1_000, "text", targets=_HALF),
    NullCase("text, rare class", "class sums", 1_500, 1_000, "text", targets=_RARE),
    NullCase("text, five classes", "joint class sums", 1_500, 1_000, "text", targets=_FIVE),
    NullCase("numbers 3,000 x 300, entries", "greedy", 3_000, 300, norm="inf"),
    NullCase("amounts 3,000 x 300, entries", "greedy", 3_000, 300, norm="inf", targets="end"),
    NullCase("rare class 3,000 x 300, entries", "greedy", 3_000, 300, norm="inf", targets=_RARE),
    NullCase("numbers, delta 0", "sufficient statistics", 4_000, 6, norm="inf", delta=0.0),
    NullCase("amounts, delta 0", "sufficient statistics", 4_000, 6, norm="inf", targets="end",
             delta=0.0),
    NullCase("rare class, delta 0", "sufficient statistics", 4_000, 6, norm="inf", targets=_RARE,
             delta=0.0),
    NullCase("numbers 3,000 x 100, delta 0", "greedy", 3_000, 100, norm="inf", delta=0.0),
    NullCase("three classes, delta 0", "greedy", 3_000, 10, targets=_THREE, delta=0.0),
    NullCase("counts, delta 0", "greedy", 3_000, 10, norm="inf", targets="counts", delta=0.0),
]  # fmt: skip


def loss(case: NullCase, y: np.ndarray, margins: Any) -> float:
    """The mean loss, in units of the variance for numbers, and without the y! of counts.

    `margins` are the probabilities of classes.
    """
    if not case.classifies:
        if case.targets == "counts":
            return float(np.mean(np.exp(np.minimum(margins, 50.0)) - y * margins))
        _, spread = TARGETS[case.targets]
        return float(np.mean((margins - y) ** 2)) / spread**2
    chances = np.maximum(margins[np.arange(len(y)), y.astype(int)], 1e-300)
    return float(-np.mean(np.log(chances)))


@cache
def whole_noise(n: int, epsilon: float, delta: float) -> float:
    """The standard deviation of a private mean of n numbers in [-1, 1], with the whole budget."""
    if delta == 0:
        return 2 * math.sqrt(2) / (n * epsilon)
    whole = gaussian_mechanisms({"whole": 1}, {"whole": 1.0}, Budget(epsilon, delta), 1)["whole"]
    return 2 * whole.noise_multiplier / n  # type: ignore[union-attr]


def mean_alone(case: NullCase, epsilon: float, centre: float) -> float:
    """What the noise of a private constant costs, about, or the centre if that is less."""
    noise = whole_noise(case.n, epsilon, case.delta)
    if not case.classifies and case.targets != "counts":
        return min((noise / TARGETS[case.targets][1]) ** 2, centre)
    if case.targets == "counts":  # half the squared error of the mean over it
        return min((5 * noise) ** 2 / COUNT / 2, centre)
    part = noise / 2 * np.ones(len(case.targets))
    return min(float(np.sum(part**2 / np.array(case.targets)) / 2), centre)


def costs(case: NullCase, epsilon: float, seed: int) -> tuple[float, float, float]:
    """What a model loses beyond the best constant, and beyond the centre; what the centre loses."""
    rng = np.random.default_rng([30_000, seed, case.n, case.p])
    model = case.model(epsilon, seed).fit(*case.draw(case.n, rng))
    x, y = case.draw(FRESH, rng)
    mine = loss(case, y, model.predict_proba(x) if case.classifies else margins_of(model, x))
    if case.classifies:
        k = len(case.targets)
        best = np.bincount(y.astype(int), minlength=k) / len(y)
        centre = np.full(k, 1 / k)
    elif case.targets == "counts":
        best, centre = np.log(y.mean()), np.zeros(1)
    else:
        best, centre = y.mean(), np.zeros(1)
    of_best, of_centre = (
        loss(case, y, np.broadcast_to(flat, (len(y), len(flat)) if case.classifies else len(y)))
        for flat in (np.atleast_1d(best), centre)
    )
    return mine - of_best, mine - of_centre, of_centre - of_best


def margins_of(model: Any, x: Any) -> np.ndarray:
    """Numbers as they are predicted, and the logarithms of the means of counts."""
    predicted = np.asarray(model.predict(x))
    if isinstance(model, PrivatePoissonRegression):
        return np.log(np.maximum(predicted, 1e-300))
    return predicted


def rows_of(case: NullCase, seeds: int) -> list[dict[str, Any]]:
    """One line for each epsilon."""
    found = []
    for epsilon in case.epsilons:
        each = np.array([costs(case, epsilon, seed) for seed in range(seeds)])
        found.append({
            "case": case.name, "path": case.path, "epsilon": epsilon,
            "cost": float(each[:, 0].mean()), "error": float(each[:, 0].std() / seeds**0.5),
            "worst": float(each[:, 0].max()), "beyond centre": float(each[:, 1].mean()),
            "mean alone": mean_alone(case, epsilon, float(each[:, 2].mean())),
        })  # fmt: skip
    return found


def selected(text: str, epsilons: tuple[float, ...] = ()) -> list[NullCase]:
    """The cases whose name or path contains the text, at these epsilons if there are any."""
    return [replace(c, epsilons=epsilons or c.epsilons) for c in CASES if text in c.name + c.path]
