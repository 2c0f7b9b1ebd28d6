"""The columns of a model in the order in which they were selected, drawn with matplotlib."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.estimators.coefficients import Coefficients, coefficients
from riata.estimators.description import describe
from riata.estimators.summary_text import shortened

#: Names along the axis and lines of several classes, beyond which nobody reads them.
SHOWN_COLUMNS, SHOWN_CLASSES = 30, 6
_COLOURS = ("#b45309", "#0f766e", "#1d4ed8", "#7e22ce", "#be123c", "#57534e")


def plot_path(model: Any, ax: Any, reach: float) -> Any:
    """See `SummaryMixin.plot_path`. `reach` is how many errors an interval has to each side."""
    found = coefficients(model)
    if not found:
        raise InvalidArgument(
            f"{describe(model).name} has no coefficients, so there is no path to draw. Draw that "
            "of a linear model."
        )
    ordered = any(each.ordered for each in found)
    places = _places(found, ordered)
    if not len(places):
        raise InvalidArgument(
            "All coefficients are 0, so there is no path to draw: model.summary() says what would "
            "help."
        )
    if ax is None:
        from matplotlib.figure import Figure

        width = max(5.0, 0.35 * len(places) + 1.5)
        ax = Figure(figsize=(width, 3.8), layout="constrained").subplots()
    at = np.arange(1, len(places) + 1)
    for k, each in enumerate(found[:SHOWN_CLASSES]):
        errors = np.where(np.isfinite(each.errors[places]), each.errors[places], math.nan)
        moved = at + 0.6 * (k / len(found[:SHOWN_CLASSES]))  # so that intervals are told apart
        ax.errorbar(
            moved, each.values[places], yerr=reach * errors, fmt="o-" if ordered else "o",
            color=_COLOURS[k], linewidth=0.8, elinewidth=1.6, markersize=4,
            label=shortened(each.label) if each.label else None,
        )  # fmt: skip
    ax.axhline(0, color="#a8a29e", linewidth=1)
    ax.set_xticks(
        at, [shortened(found[0].name(int(j)), 24) for j in places], rotation=60, ha="right"
    )
    ax.set_xlabel("in the order of selection" if ordered else "the largest first: no order known")
    ax.set_ylabel("coefficient of the encoded column")
    ax.spines[["top", "right"]].set_visible(False)
    if len(found) > 1:
        ax.legend(frameon=False)
    return ax


def _places(found: list[Coefficients], ordered: bool) -> np.ndarray:
    """The columns that are drawn, in their order: of several classes, that of the first of each."""
    if not ordered:
        sizes = np.max([np.abs(each.values) for each in found], axis=0)
        places = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        return places[:SHOWN_COLUMNS]
    orders = np.array([np.where(each.order > 0, each.order, np.inf) for each in found]).min(axis=0)
    return np.argsort(orders, kind="stable")[: np.isfinite(orders).sum()][:SHOWN_COLUMNS]
