"""Forecasts over a grid of epsilons, or of numbers of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from riata.errors import InvalidArgument
from riata.forecasting.result import Forecast
from riata.forecasting.simulate import forecast


@dataclass(frozen=True)
class ForecastCurve:
    """Forecasts over a grid of epsilons or of numbers of rows.

    Attributes
    ----------
    over : {"epsilon", "rows"}
    at : tuple of float
    forecasts : tuple of Forecast
    """

    over: str
    at: tuple[float, ...]
    forecasts: tuple[Forecast, ...]

    def __str__(self) -> str:
        metric = self.forecasts[0].metric
        lines = [f"{self.over:>12}  {metric:>8}  80% interval        learn nothing"]
        for value, each in zip(self.at, self.forecasts, strict=True):
            within = f"{each.interval[0]:z.3f} to {each.interval[1]:z.3f}"
            lines.append(f"{value:>12,.6g}  {each.score:>z8.3f}  {within:<17}   {each.nothing:.0%}")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw the expected score with its interval; returns the axes. Needs matplotlib."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 3.6), layout="constrained").subplots()
        first = self.forecasts[0]
        ax.plot(
            self.at, [each.score for each in self.forecasts], color="#b45309", marker="o",
            label="expected",
        )  # fmt: skip
        low, high = zip(*(each.interval for each in self.forecasts), strict=True)
        ax.fill_between(self.at, low, high, color="#b45309", alpha=0.15, label="80% interval")
        ax.axhline(first.best_score, color="#1c1917", linestyle="--", label="best model")
        ax.axhline(first.zero_score, color="#a8a29e", linestyle=":", label="a constant")
        ax.set_xscale("log")
        ax.set_xlabel(self.over)
        ax.set_ylabel(first.metric)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="lower right")
        return ax


def forecast_curve(
    estimator: Any,
    n_rows: int | Sequence[int],
    n_features: int,
    *,
    epsilons: Sequence[float] | None = None,
    **options: Any,
) -> ForecastCurve:
    """Forecasts for several epsilons, or for several numbers of rows.

    Parameters
    ----------
    estimator : estimator of riata
    n_rows : int or sequence of int
    n_features : int
    epsilons : sequence of float, optional
        In place of the estimator's own. Leave it out if `n_rows` is a sequence.
    **options
        As for `forecast`.
    """
    if (epsilons is None) == (np.ndim(n_rows) == 0):
        raise InvalidArgument(
            "A curve runs over one thing: pass several epsilons, or several numbers of rows."
        )
    if epsilons is None:
        rows = [int(n) for n in np.asarray(n_rows)]
        found = tuple(forecast(estimator, n, n_features, **options) for n in rows)
        return ForecastCurve("rows", tuple(map(float, rows)), found)
    models = [clone(estimator).set_params(epsilon=float(e), ledger=None) for e in epsilons]
    found = tuple(forecast(model, n_rows, n_features, **options) for model in models)  # type: ignore[arg-type]
    return ForecastCurve("epsilon", tuple(map(float, epsilons)), found)
