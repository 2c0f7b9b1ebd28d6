"""Populations for the local model: each draws people and says what the best model reaches."""

from __future__ import annotations

import csv
import gzip
import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

TEST = 20_000


class People(NamedTuple):
    x: np.ndarray
    y: np.ndarray


class Decaying:
    """Rows in the unit ball whose variances fall as 1 / j^2, a random theta, half noise."""

    def __init__(self, d: int, seed: int, noise: float = 0.35) -> None:
        self.rng = np.random.default_rng(seed)
        self.variances = np.arange(1, d + 1) ** -2.0
        self.variances *= 0.5 / self.variances.sum()
        theta = self.rng.standard_normal(d)
        self.theta = 0.35 * theta / np.sqrt(self.variances @ theta**2)
        self.noise = noise

    def rows(self, n: int) -> np.ndarray:
        x = self.rng.standard_normal((n, len(self.theta))) * np.sqrt(self.variances)
        return x / np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]

    def draw(self, n: int) -> People:
        x = self.rows(n)
        y = x @ self.theta + self.noise * self.rng.standard_normal(n)
        return People(x, np.clip(y, -1, 1))


class Choosing(Decaying):
    """Rows of even spectrum with classes: log odds with a standard deviation of 2."""

    def __init__(self, d: int, seed: int) -> None:
        super().__init__(d, seed)
        self.variances = np.full(d, 0.7 / d)
        self.theta *= 2.0 / np.sqrt(self.variances @ self.theta**2)

    def draw(self, n: int) -> People:
        x = self.rows(n)
        odds = x @ self.theta
        return People(x, (self.rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int))


def share_of_gain(y: np.ndarray, predicted: np.ndarray, x: np.ndarray) -> float:
    """F for squared loss: the gain over the mean, as a share of what least squares reaches."""
    best = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    trivial = np.mean(y**2)
    return float((trivial - np.mean((y - predicted) ** 2)) / (trivial - np.mean((y - best) ** 2)))


def sparse_people(n: int, d: int, k: int, seed: int) -> tuple[np.ndarray, sparse.csr_array]:
    """A mean with k entries and rows in the unit ball around it: signs of the entries flip."""
    rng = np.random.default_rng(seed)
    places = rng.choice(d, k, replace=False)
    signs = rng.choice([-1.0, 1.0], k)
    kept = rng.random((n, k)) < 0.95
    values = np.where(kept, signs, -signs) / np.sqrt(k)
    starts = np.arange(0, n * k + 1, k)
    x = sparse.csr_array((values.ravel(), np.tile(places, n), starts), shape=(n, d))
    mean = np.zeros(d)
    mean[places] = 0.9 * signs / np.sqrt(k)
    return mean, x


class Flights(NamedTuple):
    """Departure delay, month, origin and carrier of flights from New York: 25 columns."""

    x: np.ndarray
    delay: np.ndarray
    names: dict[str, list[str]]


def flights() -> Flights:
    """From the file nycflights13.npz in the folder that RIATA_DATA names."""
    with np.load(Path(os.environ["RIATA_DATA"]) / "nycflights13.npz") as data:
        parts = (data["data"], data["indices"], data["indptr"])
        table = sparse.csc_array(sparse.csr_array(parts, shape=tuple(data["shape"])))
        names = [str(name) for name in data["feature_names"]]
        departure, arrival = data["dep_delay"].astype(float), data["y"].astype(float)
    columns, groups = [departure[:, None]], {}
    for group in ("month", "origin", "carrier"):
        found = [i for i, name in enumerate(names) if re.match(f"{group}=", name)]
        block = table[:, found].toarray().astype(float)
        levels = [names[i].split("=")[1] for i in found]
        if group == "carrier":  # the eight largest are public knowledge
            order = np.argsort(-block.sum(axis=0), kind="stable")[:8]
            block = np.column_stack([block[:, order], 1.0 - block[:, order].sum(axis=1)])
            levels = [levels[i] for i in order] + ["other"]
        columns.append(block)
        groups[group] = levels
    return Flights(np.hstack(columns), arrival, groups)


#: From public knowledge of diamonds.
DIAMOND_BOUNDS = {
    "carat": [0, 3], "depth": [50, 75], "table": [50, 75], "x": [0, 10], "y": [0, 10], "z": [0, 6],
}  # fmt: skip


def diamonds(columns: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Some of the numbers of diamonds.csv.gz, and the logarithm of the price, in [-1, 1]."""
    with gzip.open(Path(os.environ["RIATA_DATA"]) / "diamonds.csv.gz", "rt") as file:
        table = list(csv.DictReader(file))
    x = np.array([[float(row[name]) for name in columns] for row in table])
    return x, (np.log([float(row["price"]) for row in table]) - 8) / 2
