"""The data of the arena: dense or one-hot tables with a public encoding, and designs of our own.

Ranges and categories are facts about the columns, written down here and not taken from rows. The
real data lies in the folder that the environment variable RIATA_DATA names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from riata import Bounds

from menu_data import FOLDER


@dataclass(frozen=True)
class Table:
    """Rows and targets with what is public about them. Labels are -1 and 1."""

    x: Any
    y: np.ndarray
    bounds: Bounds
    classifies: bool = False

    def entrywise(self) -> Table:
        """The same table with the weaker promise that no entry exceeds 1."""
        return replace(self, bounds=Bounds(1.0, self.bounds.y))

    def widened(self, factor: float) -> Table:
        """The same table with bounds that are too wide by a factor."""
        y = None if self.bounds.y is None else factor * self.bounds.y
        return replace(self, bounds=replace(self.bounds, x=factor * self.bounds.x, y=y))

    def shuffled(self, seed: int) -> Table:
        """The same rows with targets that have nothing to do with them."""
        return replace(self, y=np.random.default_rng(seed).permutation(self.y))


def _numbers(frame: pd.DataFrame, ranges: Mapping[str, tuple[float, float]]) -> np.ndarray:
    """Columns scaled from public ranges to [-1, 1]; missing ones in the middle."""
    found = [2 * (frame[name] - low) / (high - low) - 1 for name, (low, high) in ranges.items()]
    return np.clip(np.nan_to_num(np.column_stack(found)), -1, 1)


def _one_hot(values: pd.Series, choices: list[Any]) -> np.ndarray:
    return (values.to_numpy()[:, None] == np.array(choices, dtype=object)).astype(float)


def _binned(values: pd.Series, edges: list[float]) -> np.ndarray:
    return np.eye(len(edges) + 1)[np.digitize(values, edges)]


@cache
def housing() -> Table:
    """House values of 20,640 blocks: 8 numbers and a place, 13 columns."""
    frame = pd.read_csv(FOLDER / "california_housing.csv.gz")
    numbers = _numbers(frame, {
        "longitude": (-125, -114), "latitude": (32, 42), "housing_median_age": (0, 52),
        "total_rooms": (0, 40_000), "total_bedrooms": (0, 6_500), "population": (0, 36_000),
        "households": (0, 6_100), "median_income": (0, 15),
    })  # fmt: skip
    places = ["<1H OCEAN", "INLAND", "NEAR OCEAN", "NEAR BAY", "ISLAND"]
    x = np.hstack([numbers, _one_hot(frame["ocean_proximity"], places)])
    return Table(x, frame["Price"].to_numpy() / 250_000 - 1, Bounds(3.0, 1.1, norm="l2"))


@cache
def diamonds() -> Table:
    """Log prices of 53,940 diamonds: three grades and six numbers, 26 columns."""
    frame = pd.read_csv(FOLDER / "diamonds.csv.gz")
    numbers = _numbers(frame, {
        "carat": (0, 5), "depth": (40, 80), "table": (40, 100), "x": (0, 11), "y": (0, 11),
        "z": (0, 7),
    })  # fmt: skip
    grades = [
        _one_hot(frame["cut"], ["Fair", "Good", "Very Good", "Premium", "Ideal"]),
        _one_hot(frame["color"], list("DEFGHIJ")),
        _one_hot(
            frame["clarity"], ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
        ),
    ]  # fmt: skip
    y = (np.log(frame["price"].to_numpy()) - 8) / 2
    return Table(np.hstack([numbers, *grades]), y, Bounds(3.0, 1.2, norm="l2"))


@cache
def bank() -> Table:
    """Which of 41,188 calls sold a deposit (11%): categories, bins and two numbers."""
    frame = pd.read_csv(FOLDER / "bank_marketing.csv.gz")
    names = ["job", "marital", "education", "car.loan", "hou.loan", "per.loan", "contact", "month",
             "day_of_week", "outcome"]  # fmt: skip
    parts = [_one_hot(frame[name], sorted(frame[name].dropna().unique())) for name in names]
    parts += [_binned(frame["age"], [25, 30, 35, 40, 50, 60]), _binned(frame["pdays"], [7, 998])]
    parts.append(_numbers(frame, {"age": (17, 98), "campaign": (1, 40)}))
    y = np.where(frame["y"] == "yes", 1.0, -1.0)
    return Table(np.hstack(parts), y, Bounds(14**0.5, norm="l2"), classifies=True)


def _design(x: np.ndarray, signal: np.ndarray, noise: float, rng: Any, length: float) -> Table:
    """Rows inside a length, targets inside 1 nearly always."""
    y = signal / signal.std() + noise * rng.standard_normal(len(x))
    return Table(x, np.clip(y / 4, -1, 1), Bounds(length, 1.0, norm="l2"))


def correlated(n: int = 20_000, p: int = 50, seed: int = 0) -> Table:
    """Columns whose eigenvalues fall as 1 / j, all of them relevant."""
    rng = np.random.default_rng([1, seed])
    turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
    x = rng.standard_normal((n, p)) / np.sqrt(1 + np.arange(p)) @ turn
    length = float(np.sqrt(np.sum(1 / (1 + np.arange(p)))))
    signal = x @ turn.T @ rng.standard_normal(p)
    return _design(x / (2 * length), signal, 0.5, rng, 1.0)


def heavy(n: int = 10_000, p: int = 20, seed: int = 0) -> Table:
    """Correlated columns with tails of a Student law of three degrees, and such noise."""
    rng = np.random.default_rng([2, seed])
    x = rng.standard_t(3, (n, p)) @ (np.eye(p) + 0.3 * rng.standard_normal((p, p)) / p**0.5)
    y = x @ rng.standard_normal(p) / p**0.5 + rng.standard_t(3, n)
    return Table(np.clip(x / 20, -1, 1), np.clip(y / 10, -1, 1), Bounds(3.0, 1.0, norm="l2"))


def categories(n: int = 20_000, seed: int = 0) -> Table:
    """Six categories of 2 to 20 values with unequal frequencies, as one-hot columns."""
    rng = np.random.default_rng([3, seed])
    parts, signal = [], np.zeros(n)
    for size in (2, 3, 5, 8, 12, 20):
        often = rng.dirichlet(np.full(size, 0.7))
        value = rng.choice(size, n, p=often)
        parts.append(np.eye(size)[value])
        signal += rng.standard_normal(size)[value]
    return _design(np.hstack(parts), signal, 1.0, rng, 6**0.5)


def many_for_few(n: int = 2_000, p: int = 100, seed: int = 0) -> Table:
    """Few rows, many columns, one dominant direction."""
    rng = np.random.default_rng([4, seed])
    common = rng.standard_normal((n, 1))
    x = (common + 0.6 * rng.standard_normal((n, p))) / (2 * p**0.5)
    return _design(x, x @ (1 + 0.5 * rng.standard_normal(p)), 0.5, rng, 1.0)


def small(n: int = 1_000, p: int = 8, seed: int = 0) -> Table:
    """Few rows and few columns."""
    rng = np.random.default_rng([5, seed])
    x = rng.uniform(-1, 1, (n, p)) @ (np.eye(p) + 0.4) / 2
    return _design(np.clip(x, -1, 1), x @ rng.standard_normal(p), 0.5, rng, p**0.5)


def classes(n: int = 20_000, p: int = 20, seed: int = 0) -> Table:
    """Two classes, one of them rare, from correlated columns."""
    table = correlated(n, p, seed + 100)
    rng = np.random.default_rng([6, seed])
    margins = 6 * table.y - 1.5
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-margins)), 1.0, -1.0)
    return Table(table.x, y, Bounds(1.0, norm="l2"), classifies=True)


REAL: dict[str, Callable[[], Table]] = {"housing": housing, "diamonds": diamonds, "bank": bank}
DESIGNS: dict[str, Callable[[], Table]] = {
    "correlated": correlated, "heavy tails": heavy, "categories": categories,
    "2,000 x 100": many_for_few, "1,000 x 8": small, "two classes": classes,
}  # fmt: skip
