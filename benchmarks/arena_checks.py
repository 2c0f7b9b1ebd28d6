"""What the default does on the arena's tables beside its score, for `benchmarks/arena.py`.

Each check gives lines of a table for one set at one epsilon, and a sentence about all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from riata import PrivateLasso, PrivateLogisticRegression, forecast
from riata.mechanisms import GaussianMechanism
from riata.privacy import Budget
from riata.privacy.calibrate import calibrate

from arena_data import Table

#: A score from bounds that are 10 and 100 times too wide may be so much lower.
ALLOWED = {10.0: 0.02, 100.0: 0.05}

#: A set counts where the stated bounds learn at least so much more than a constant.
LEARNED = 0.05

#: The log-loss may be so much above that of private class frequencies, in nats.
NATS = 0.02

#: A forecast promises too much if it is so many widths of its interval above the truth.
WIDTHS = 1.5

Score = Callable[[Table, float, int], float | None]


def split(table: Table, seed: int) -> list[Any]:
    found: list[Any] = train_test_split(table.x, table.y, test_size=0.25, random_state=seed)
    return found


def widened(table: Table, factor: float, what: str) -> Table:
    """The table with bounds on rows, on the target or on both that are too wide by a factor."""
    wide = table.widened(factor)
    if what == "rows":
        return replace(wide, bounds=replace(wide.bounds, y=table.bounds.y))
    return replace(table, bounds=replace(table.bounds, y=wide.bounds.y)) if what == "y" else wide


def nothing(table: Table) -> float:
    """The score of a constant."""
    if table.n_classes > 2:
        return float(np.bincount(table.y.astype(int)).max() / len(table.y))
    return 0.5 if table.classifies else 0.0


def of_widths(
    name: str, table: Table, epsilon: float, splits: int, factors: list[float], score: Score
) -> list[dict[str, Any]]:
    """What bounds that are too wide cost, each kind by itself and all together."""

    def mean(which: Table) -> float:
        return float(np.mean([score(which, epsilon, k) for k in range(splits)]))

    exact, rows = mean(table), []
    for factor in factors:
        row = {"set": name, "epsilon": epsilon, "factor": factor, "as stated": exact}
        for what in ("rows",) if table.bounds.y is None else ("rows", "y", "both"):
            row[f"{what} wide"] = mean(widened(table, factor, what))
        row["learns"] = bool(exact - nothing(table) > LEARNED)
        rows.append(row)
    return rows


def about_widths(rows: list[dict[str, Any]]) -> str:
    lines = []
    for factor in sorted({row["factor"] for row in rows}):
        lost = [
            row["as stated"] - score
            for row in rows
            if row["factor"] == factor and row["learns"]
            for key, score in row.items()
            if key.endswith("wide")
        ]
        most = ALLOWED.get(factor, 0.05)
        within = np.mean(np.array(lost) <= most)
        lines.append(
            f"{factor:g} times too wide: {within:.0%} of {len(lost)} cost at most {most:g}, "
            f"{np.mean(lost):.3f} on average, the worst {max(lost):.3f}"
        )
    return "\n".join(lines)


def log_loss(table: Table, y: np.ndarray, margins: np.ndarray) -> float:
    """The mean of -log of the probability of what happened."""
    if table.n_classes == 2:
        margins = np.column_stack([np.zeros(len(y)), margins.reshape(len(y))])
    codes = np.searchsorted(table.classes, y)
    return float(-log_softmax(margins, axis=1)[np.arange(len(y)), codes].mean())


def frequencies(table: Table, y: np.ndarray, epsilon: float, delta: float, seed: int) -> np.ndarray:
    """Log frequencies of the classes from counts with Gaussian noise, by the whole budget."""
    budget = Budget(epsilon, delta)
    strength = calibrate(lambda s: GaussianMechanism(1 / s).event, budget)
    counts = np.bincount(np.searchsorted(table.classes, y), minlength=table.n_classes)
    noise = np.random.default_rng([11, seed]).standard_normal(table.n_classes)
    found = np.maximum(counts + 2**0.5 / strength * noise, 1.0)
    return np.log(found / found.sum())


def of_probabilities(
    name: str, table: Table, epsilon: float, delta: float, splits: int
) -> list[dict[str, Any]]:
    """The log-loss of the default beside that of private class frequencies."""
    if not table.classifies:
        return []
    mine, theirs = [], []
    for seed in range(splits):
        x, held, y, truth = split(table, seed)
        model = PrivateLogisticRegression(
            epsilon, delta, bounds=table.bounds, classes=table.classes, random_state=seed
        ).fit(x, y)
        mine.append(log_loss(table, truth, model.decision_function(held)))
        logs = frequencies(table, y, epsilon, delta, seed)
        flat = np.tile(logs, (len(truth), 1))
        if table.n_classes == 2:
            flat = flat[:, 1] - flat[:, 0]
        theirs.append(log_loss(table, truth, flat))
    gap = float(np.mean(mine) - np.mean(theirs))
    return [{
        "set": name, "epsilon": epsilon, "log-loss": float(np.mean(mine)), "frequencies":
        float(np.mean(theirs)), "gap": gap, "worst": float(np.max(np.subtract(mine, theirs))),
    }]  # fmt: skip


def about_probabilities(rows: list[dict[str, Any]]) -> str:
    gaps = np.array([row["gap"] for row in rows])
    return (
        f"log-loss at most {NATS:g} above that of private frequencies in "
        f"{np.mean(gaps <= NATS):.0%} of {len(gaps)}, the worst {gaps.max():.3f}"
    )


def guess_of(table: Table, best: float) -> dict[str, Any]:
    """What somebody can state who knows such tables and the best score, and no correlations.

    A schema knows the entries of a row, and whether all columns are categories.
    """
    x, p = table.x, table.x.shape[1]
    filled = (x != 0).sum() / x.shape[0] if sparse.issparse(x) else np.count_nonzero(x) / len(x)
    few = x[:2_000].toarray() if sparse.issparse(x) else x[:2_000]
    guess: dict[str, Any] = {
        "signal": float(np.clip(best, 0.01, 0.995)), "nonzeros": max(1, round(float(filled)))
    }  # fmt: skip
    if set(np.unique(few)) <= {0.0, 1.0}:
        guess |= {"design": "binary", "density": float(np.clip(filled / p, 1e-4, 1.0))}
    if table.classifies:
        guess["positives"] = float(np.mean(table.y == table.classes[1]))
    else:
        guess["spread"] = float(min(table.y.std() / table.bounds.y, 1.0))
    return guess


def best_linear(table: Table, splits: int) -> float:
    """The held-out score of the best of a few penalties, without privacy."""
    scores = []
    for seed in range(splits):
        x, held, y, truth = split(table, seed)
        if table.classifies:
            models = [LogisticRegression(C=c, max_iter=1_000) for c in (0.01, 1.0, 100.0)]
            margins = [model.fit(x, y).decision_function(held) for model in models]
            scores.append([roc_auc_score(truth, each) for each in margins])
        else:
            how = "lsqr" if sparse.issparse(x) else "auto"
            ridges = [Ridge(a, solver=how) for a in (1e-3, 1.0, 10.0, 100.0)]
            found = [ridge.fit(x, y).predict(held) for ridge in ridges]
            reach = table.bounds.y
            scores.append([r2_score(truth, np.clip(each, -reach, reach)) for each in found])
    return float(np.max(np.mean(scores, axis=0)))


def of_forecast(
    name: str, table: Table, epsilon: float, delta: float, fits: list[float], best: float
) -> list[dict[str, Any]]:
    """The forecast from what can be stated beside the held-out scores of fits."""
    facts = {"bounds": table.bounds}
    if table.classifies:
        model: Any = PrivateLogisticRegression(epsilon, delta, classes=table.classes, **facts)
    else:
        model = PrivateLasso(epsilon, delta, **facts)
    n, p = int(0.75 * table.x.shape[0]), table.x.shape[1]
    found = forecast(model, n, p, **guess_of(table, best))
    low, high = found.interval
    scores, width = np.array(fits), max(high - low, 0.01)
    return [{
        "set": name, "epsilon": epsilon, "best": best, "fits": float(scores.mean()),
        "forecast": found.score, "low": low, "high": high,
        "inside": float(np.mean((low <= scores) & (scores <= high))),
        "near": float(np.mean((low - 0.01 <= scores) & (scores <= high + 0.01))),
        "promised": float(np.mean(found.score > scores + WIDTHS * width)),
        "solver": found.plan.solver,
    }]  # fmt: skip


def about_forecasts(rows: list[dict[str, Any]]) -> str:
    lines = []
    for epsilon in (*sorted({row["epsilon"] for row in rows}), None):
        few = [row for row in rows if epsilon in (row["epsilon"], None)]
        inside, near, over = (
            np.mean([row[key] for row in few]) for key in ("inside", "near", "promised")
        )
        width = np.median([row["high"] - row["low"] for row in few])
        lines.append(
            f"{'all' if epsilon is None else f'epsilon {epsilon:g}'}: {inside:.0%} of the fits of "
            f"{len(few)} forecasts in the 80% interval, {near:.0%} with .01 on both sides; "
            f"{over:.0%} are promised more than {WIDTHS} widths too much; median width {width:.3f}"
        )
    return "\n".join(lines)
