"""Curves of numbers: how a prediction changes with one column of the file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from riata.data.schema import Schema
from riata.data.schema.named_features import NamedFeatures
from riata.data.schema.number import Count, Number
from riata.estimators.coefficients import Coefficients
from riata.report.plots import ACCENT, MUTED, WIDE, Plot, plot
from riata.report.text import both_ends, plain

#: How many curves are drawn, those that reach farthest first.
MOST_CURVES = 9

CAPTION = (
    "How the model's linear function changes with a number while all other columns stay the same, "
    "from its mean over the knots or bins. Where there are few rows, a curve is mostly noise."
)
_LONGEST_NAME = 26


def curves(name: str, found: Coefficients, schema: Schema | None) -> Plot | None:
    """The numbers with knots or bins that are not 0, or None if there are none."""
    drawn = _heights(found, schema)[:MOST_CURVES]
    if not drawn:
        return None

    def draw(figure: Any, width: float) -> None:
        across = min(3 if width == WIDE else 2, len(drawn))
        down = -(-len(drawn) // across)
        figure.set_figheight(0.3 + 1.75 * down)
        cells = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
        for axes, (feature, heights) in zip(cells, drawn, strict=False):
            axes.axhline(0, color=MUTED, linewidth=1)
            axes.grid(axis="y", linewidth=0.7)
            if feature.bins:
                edges = [feature.bounds[0], *feature.bins, feature.bounds[1]]
                axes.stairs(heights, edges, baseline=None, color=ACCENT, linewidth=2)
            else:
                axes.plot(feature.knots, heights, "o-", color=ACCENT, linewidth=2, markersize=3)
            axes.locator_params(nbins=4)
            if isinstance(feature, Count):
                _log_axis(axes, feature.bounds[1])
            axes.tick_params(length=0, labelsize=8)
            axes.set_title(both_ends(feature.name, _LONGEST_NAME), fontsize=9.5)
        for axes in cells[len(drawn) :]:
            axes.set_visible(False)

    words = "; ".join(_in_words(feature, heights) for feature, heights in drawn)
    return plot(name, f"Curves. {plain(words)}.", draw)


def _in_words(feature: Number, heights: np.ndarray) -> str:
    first, last = (f"{heights[end]:+.3g}" for end in (0, -1))
    low, high = (f"{bound:g}" for bound in feature.bounds)
    return f"{feature.name} {first} at {low}, {last} at {high}"


def _log_axis(axes: Any, most: float) -> None:
    """Counts from 0 on, on about the scale of their logarithms, with at most four ticks."""
    powers = range(1, math.floor(math.log10(max(most, 10.0))) + 1)
    ticks = [0, *(10**k for k in powers[:: -(-len(powers) // 3)])]
    axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.0, most)


def _heights(found: Coefficients, schema: Schema | None) -> list[tuple[Number, np.ndarray]]:
    """Each curve, from its mean; those that reach farthest first."""
    if schema is None or not isinstance(schema.features, NamedFeatures):
        return []
    if schema.n_features != found.size:
        return []
    heights = [
        (feature, found.values[columns] - found.values[columns].mean())
        for feature, columns in zip(schema.features, schema.groups, strict=True)
        if isinstance(feature, Number) and not feature.line and np.any(found.values[columns])
    ]
    return sorted(heights, key=lambda each: -float(np.ptp(each[1])))
