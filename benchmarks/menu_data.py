"""The data of the menu: each with a fixed public split, public bounds and public radii.

Nothing here is learned from rows: words and categories are hashed into a fixed number of columns,
scales and caps are facts about the columns, and every fourth row is held out. The radii are the
exception: one for all solvers and all epsilons, but chosen by hand among three or four after a look
at held-out scores of Frank-Wolfe at epsilon 1 and 10.

The real data lies in the folder that the environment variable RIATA_DATA names, which is
../shared/data beside the project unless it is set; the flights come with the package.

    python benchmarks/menu_data.py [NAME ...]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score

from riata import Bounds
from riata.datasets import load_flights

from results import show

FOLDER = Path(os.environ.get("RIATA_DATA", Path(__file__).parents[2] / "shared" / "data"))
REGRESSION, CLASSIFICATION = "regression", "classification"

#: The columns that words are hashed into.
WORD_COLUMNS = 2**14

#: The columns that the categories of the hospital stays are hashed into.
CATEGORY_COLUMNS = 2**12


@dataclass(frozen=True)
class Data:
    """Rows to fit and rows to score, with what is public about them.

    `bounds` and `l2_bounds` are two promises that hold for the same rows: the second is on the
    length of a row, which solvers with Gaussian noise need. Labels are -1 and 1.
    """

    name: str
    x: Any
    y: np.ndarray
    held_x: Any
    held_y: np.ndarray
    bounds: Bounds
    l2_bounds: Bounds
    task: str
    radius: float
    l2_radius: float

    @property
    def classifies(self) -> bool:
        return self.task == CLASSIFICATION

    def score(self, predicted: np.ndarray) -> float:
        """The accuracy of predicted labels, or the R2 of predicted numbers, on held-out rows."""
        measure = accuracy_score if self.classifies else r2_score
        return float(measure(self.held_y, predicted))

    def score_without_features(self) -> float:
        """The score of the most frequent label or of the mean, from the rows to fit."""
        if self.classifies:
            return self.score(np.full(len(self.held_y), 1.0 if self.y.mean() > 0 else -1.0))
        return self.score(np.full(len(self.held_y), self.y.mean()))


def dense() -> Data:
    """10,000 rows uniform in [-1, 1]^1000, five columns matter, noise 0.1."""
    n, held, p, support = 10_000, 2_500, 1_000, 5
    rng = np.random.default_rng(1)
    theta = np.zeros(p)
    theta[rng.choice(p, support, replace=False)] = np.array([0.3, -0.25, 0.2, -0.15, 0.1])
    x = rng.uniform(-1, 1, (n + held, p))
    y = np.clip(x @ theta + 0.1 * rng.standard_normal(n + held), -1, 1)
    return Data(
        "dense", x[:n], y[:n], x[n:], y[n:],
        Bounds(x=1.0, y=1.0), Bounds(x=p**0.5, y=1.0, norm="l2"), REGRESSION, 1.0, 0.5,
    )  # fmt: skip


def zipf() -> Data:
    """20,000 texts of 20,000 words after Zipf's law, tf-idf of length 1; twenty words matter.

    The idf is that of the law which the words are drawn from, not of the texts.
    """
    n, held, p, words, support = 20_000, 5_000, 20_000, 40, 20
    rng = np.random.default_rng(2)
    frequency = 1 / (np.arange(p) + 2.7)
    frequency /= frequency.sum()
    drawn = np.searchsorted(np.cumsum(frequency)[:-1], rng.random((n + held, words)))
    drawn, starts = drawn.astype(np.int32), np.arange(0, drawn.size + 1, words, dtype=np.int32)
    counts = sparse.csr_array((np.ones(drawn.size), drawn.ravel(), starts), shape=(n + held, p))
    counts.sum_duplicates()
    idf = -np.log1p(-((1 - frequency) ** words))
    rows = counts.multiply(idf).tocsr()
    rows = sparse.diags_array(1 / np.sqrt(rows.power(2).sum(axis=1))) @ rows
    theta = np.zeros(p)
    theta[rng.choice(np.arange(1, 100), support, replace=False)] = np.tile(
        [30.0, -30.0], support // 2
    )
    y = np.where(rng.random(n + held) < 1 / (1 + np.exp(-(rows @ theta))), 1.0, -1.0)
    unit = Bounds(x=1.0, norm="l2")
    return Data("zipf", rows[:n], y[:n], rows[n:], y[n:], unit, unit, CLASSIFICATION, 30.0, 100.0)


def clickbait() -> Data:
    """32,000 headlines, half of them clickbait. One row is a headline."""
    rows = lines("clickbait_headlines.jsonl.gz")
    return _texts("clickbait", [r["text"] for r in rows], [r["label"] == 1 for r in rows])


def newsgroups() -> Data:
    """18,846 posts, comp.* against the other groups. One row is a post."""
    rows = lines("20newsgroups.jsonl.gz")
    labels = [r["label"].startswith("comp.") for r in rows]
    return _texts("20newsgroups", [r["text"] for r in rows], labels)


#: Numbers of a hospital stay, and the public value that counts as 1. Larger ones are cut.
_CAPS = {
    "num_lab_procedures": 100, "num_procedures": 6, "num_medications": 50, "number_diagnoses": 16,
    "number_outpatient": 10, "number_emergency": 10, "number_inpatient": 10,
}  # fmt: skip
_LEFT_OUT = {"encounter_id", "patient_nbr", "time_in_hospital", "readmitted", *_CAPS}


def _stays(first_only: bool) -> list[dict[str, str]]:
    with gzip.open(FOLDER / "diabetes130_raw.csv.gz", "rt", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    if first_only:
        first: dict[str, dict[str, str]] = {}
        for stay in found:
            known = first.get(stay["patient_nbr"])
            if known is None or int(stay["encounter_id"]) < int(known["encounter_id"]):
                first[stay["patient_nbr"]] = stay
        found = list(first.values())
    return found


def readmitted() -> np.ndarray:
    """Whether each patient came back after the first stay: 1 or -1."""
    return np.array([-1.0 if stay["readmitted"] == "NO" else 1.0 for stay in _stays(True)])


def stays(*, first_only: bool = True) -> tuple[Any, np.ndarray, float]:
    """Rows and days in hospital of stays, or of the first of each patient, and a row's length.

    A stay has 39 categories, two of them under one hash at times, and seven numbers. Days run from
    1 to 14, and -1 to 1 stands for them.
    """
    found = _stays(first_only)
    named = [k for k in found[0] if k not in _LEFT_OUT]
    hasher = FeatureHasher(CATEGORY_COLUMNS, input_type="string", alternate_sign=False)
    categories = hasher.transform([f"{k}={stay[k]}" for k in named] for stay in found)
    categories.data[:] = 1.0
    numbers = np.array([[float(stay[k]) / cap for k, cap in _CAPS.items()] for stay in found])
    x = sparse.csr_array(sparse.hstack([categories, np.minimum(numbers, 1.0)], format="csr"))
    y = (np.array([float(stay["time_in_hospital"]) for stay in found]) - 7.5) / 6.5
    return x, y, (len(named) + len(_CAPS)) ** 0.5


def diabetes() -> Data:
    """Days in hospital of 71,518 patients, the first stay of each: one row is a person."""
    x, y, length = stays()
    return _split(
        "diabetes", x, y,
        Bounds(x=1.0, y=1.0), Bounds(x=length, y=1.0, norm="l2"), REGRESSION, 2.0, 1.0,
    )  # fmt: skip


def flights() -> Data:
    """Arrival delays of 327,346 flights, as in the demo. One row is a flight."""
    found = load_flights()
    length = Bounds(x=7**0.5, y=1.0, norm="l2")  # one number and six categories
    y = found.bounds.clip_y(found.y)
    return _split("flights", found.x, y, found.bounds, length, REGRESSION, 1.0, 1.0)


#: Every data set of the menu.
LOADERS: dict[str, Callable[[], Data]] = {
    "dense": dense,
    "zipf": zipf,
    "clickbait": clickbait,
    "20newsgroups": newsgroups,
    "diabetes": diabetes,
    "flights": flights,
}


@cache
def without_privacy(name: str) -> float:
    """The score of scikit-learn's ridge or logistic regression, the best of four penalties."""
    data = LOADERS[name]()
    if data.classifies:
        models = [LogisticRegression(C=c, max_iter=1000) for c in (1, 10, 100, 1000)]
    else:
        models = [Ridge(alpha, solver="lsqr") for alpha in (0.1, 1, 10, 100)]
    return max(data.score(model.fit(data.x, data.y).predict(data.held_x)) for model in models)


def lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _texts(name: str, texts: Iterable[str], labels: list[bool]) -> Data:
    """Counts of hashed words, brought to length 1. No idf: that would be read from the rows."""
    words = HashingVectorizer(n_features=WORD_COLUMNS, alternate_sign=False, norm="l2")
    x = sparse.csr_array(words.transform(texts))
    y = np.where(labels, 1.0, -1.0)
    unit = Bounds(x=1.0, norm="l2")
    return _split(name, x, y, unit, unit, CLASSIFICATION, 30.0, 100.0)


def _split(name: str, x: Any, y: np.ndarray, bounds: Bounds, *public: Any) -> Data:
    """Every fourth row held out, and rows inside the bounds, as every solver sees them."""
    held, x = np.arange(len(y)) % 4 == 0, bounds.clip_x(x)
    return Data(name, x[~held], y[~held], x[held], y[held], bounds, *public)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(LOADERS)}")
    rows = []
    for name in parser.parse_args().names or LOADERS:
        data = LOADERS[name]()
        stored = data.x.nnz if sparse.issparse(data.x) else data.x.size
        rows.append(
            {
                "data": name,
                "task": data.task,
                "rows to fit": data.x.shape[0],
                "held out": len(data.held_y),
                "columns": data.x.shape[1],
                "entries a row": stored / data.x.shape[0],
                "bounds": f"{data.bounds.norm} {data.bounds.x:g}",
                "l1 radius": data.radius,
                "without features": data.score_without_features(),
                "without privacy": without_privacy(name),
            }
        )
    show("The data of the menu, and scikit-learn's score without privacy", rows)


if __name__ == "__main__":
    main()
