"""The data of the arena: tables of few columns with a public encoding, and designs of our own.

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
import statsmodels.api as sm
from sklearn.datasets import load_breast_cancer, load_digits

from riata import Bounds

from menu_data import FOLDER

statsmodels = sm.datasets


@dataclass(frozen=True)
class Table:
    """Rows and targets with what is public about them.

    Labels are -1 and 1 for two classes, 0 to K - 1 for more; `n_classes` is 0 for regression.
    """

    x: Any
    y: np.ndarray
    bounds: Bounds
    n_classes: int = 0

    @property
    def classifies(self) -> bool:
        return self.n_classes > 0

    @property
    def classes(self) -> list[float]:
        return [-1.0, 1.0] if self.n_classes == 2 else [float(k) for k in range(self.n_classes)]

    def sample(self, n: int, seed: int = 0) -> Table:
        """So many of the rows at random, or all."""
        if self.x.shape[0] <= n:
            return self
        few = np.random.default_rng([7, seed]).choice(self.x.shape[0], n, replace=False)
        return replace(self, x=self.x[few], y=self.y[few])

    def entrywise(self) -> Table:
        """The same table with the weaker promise that no entry exceeds 1."""
        return replace(self, bounds=Bounds(1.0, self.bounds.y))

    def widened(self, factor: float) -> Table:
        """The same table with bounds that are too wide by a factor."""
        bounds = self.bounds
        y = None if bounds.y is None else factor * bounds.y
        length = None if bounds.length is None else factor * bounds.length
        return replace(self, bounds=replace(bounds, x=factor * bounds.x, y=y, length=length))

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
    return Table(np.hstack(parts), y, Bounds(14**0.5, norm="l2"), n_classes=2)


def digits() -> Table:
    """1,797 pictures of 64 pixels in ten classes."""
    x, y = load_digits(return_X_y=True)
    return Table(x / 16, y.astype(float), Bounds(5.0, norm="l2", nonnegative=True), n_classes=10)


def cancer() -> Table:
    """569 tumours, benign or not, from 30 measurements scaled by round numbers."""
    x, y = load_breast_cancer(return_X_y=True)
    caps = 10.0 ** np.ceil(np.log10(_CANCER_LARGEST))
    return Table(x / caps, np.where(y == 1, 1.0, -1.0), Bounds(30**0.5, norm="l2"), n_classes=2)


#: What these measurements of tumours reach, roughly; only the power of ten above is used.
_CANCER_LARGEST = np.array([28, 39, 188, 2500, 0.16, 0.34, 0.42, 0.2, 0.3, 0.09, 2.8, 4.8, 21, 540,
                            0.03, 0.13, 0.39, 0.05, 0.07, 0.02, 36, 49, 251, 4200, 0.22, 1.05, 1.25,
                            0.29, 0.66, 0.2])  # fmt: skip


def visits() -> Table:
    """Log of 1 + visits to a doctor of 20,190 people (RAND experiment), nine numbers and flags."""
    frame = statsmodels.randhie.load_pandas().data
    x = _numbers(frame, {
        "lncoins": (0, 5), "idp": (0, 1), "lpi": (0, 8), "fmde": (0, 10), "physlm": (0, 1),
        "disea": (0, 60), "hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1),
    })  # fmt: skip
    return Table(x, np.log1p(frame["mdvis"].to_numpy()) / 2.5 - 0.5, Bounds(3.0, 1.5, norm="l2"))


def affairs() -> Table:
    """Which of 6,366 people had an affair (32%): eight numbers (Fair 1978)."""
    frame = statsmodels.fair.load_pandas().data
    x = _numbers(frame, {
        "rate_marriage": (1, 5), "age": (15, 60), "yrs_married": (0, 30), "children": (0, 6),
        "religious": (1, 4), "educ": (9, 20), "occupation": (1, 6), "occupation_husb": (1, 6),
    })  # fmt: skip
    y = np.where(frame["affairs"] > 0, 1.0, -1.0)
    return Table(x, y, Bounds(8**0.5, norm="l2"), n_classes=2)


TABLES: dict[str, Callable[[], Table]] = {
    "housing": housing, "diamonds": diamonds, "bank": bank, "digits": digits, "cancer": cancer,
    "visits": visits, "affairs": affairs,
}  # fmt: skip
