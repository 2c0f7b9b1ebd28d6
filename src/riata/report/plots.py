"""Plots in the colours of the page, each in a wide form and in one for phones."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from riata.drawing import inline_svg
from riata.estimators.coefficients import Line
from riata.estimators.summary import Term
from riata.report.text import both_ends, plain, shortened
from riata.wording import number_of

#: How many standard errors a 90% interval reaches to each side.
NORMAL_90 = 1.645

#: Ratios beyond these are drawn at them.
RATIOS = (1e-6, 1e6)

#: Colours that stand for the page's own, which differ in the dark and on paper.
INK, MUTED, GRID, ACCENT, ALARM, SECOND = (f"#00000{k}" for k in range(1, 7))
_VARIABLES = {
    INK: "ink", MUTED: "muted", GRID: "line", ACCENT: "accent", ALARM: "alarm", SECOND: "second",
    # The colours of riata's other drawings.
    "#1c1917": "ink", "#b45309": "accent", "#94a3b8": "second", "#a8a29e": "muted",
}  # fmt: skip
#: Widths in inches: of a page on a screen, and of a phone. At 72 points an inch and 4/3 pixels a
#: point, 1 inch has 96 pixels.
WIDE, NARROW = 7.6, 3.6
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "xtick.color": MUTED,
    "ytick.color": INK,
    "grid.color": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
}
_LONGEST_NAME = {WIDE: 34, NARROW: 19}
#: Charges that all came within this time are counted, and not put on a calendar.
_CALENDAR = timedelta(days=1)


@dataclass(frozen=True)
class Plot:
    """One drawing in two widths, with what it shows in words."""

    label: str
    wide: str
    narrow: str


def plot(name: str, label: str, draw: Callable[[Any, float], None]) -> Plot:
    """What `draw` draws on an empty figure of a given width."""
    return Plot(label, _svg(f"{name}-wide", draw, WIDE), _svg(f"{name}-narrow", draw, NARROW))


def _svg(name: str, draw: Callable[[Any, float], None], width: float) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the measuring font lacks: the page has them
        figure = Figure(figsize=(width, 3.0), layout="constrained", facecolor="none")
        draw(figure, width)
        for axes in figure.axes:
            axes.set_facecolor("none")
        return coloured(inline_svg(figure))


def coloured(svg: str) -> str:
    """An SVG in the colours and the font of the page, without names of its own."""
    for colour, name in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{name})")
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<style type="text/css">.*?</style>', "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"font-family:[^;\"]*(;\s*)?", "", svg)
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", svg)
    return svg.replace("<svg ", '<svg aria-hidden="true" ', 1)


def _forest(figure: Any, names: Sequence[str], width: float) -> tuple[Any, np.ndarray]:
    """Axes with a line for each name, from top to bottom, and where these lines are."""
    figure.set_figheight(0.6 + 0.27 * len(names))
    axes, places = figure.subplots(), np.arange(len(names))[::-1]
    axes.grid(axis="x", linewidth=0.7)
    axes.set_yticks(places, [both_ends(name, _LONGEST_NAME[width]) for name in names])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    return axes, places


def of_coefficients(name: str, lines: list[Line], what: str) -> Plot:
    """The largest coefficients with their intervals."""

    def draw(figure: Any, width: float) -> None:
        axes, places = _forest(figure, [line.name for line in lines], width)
        values = [line.value for line in lines]
        axes.axvline(0, color=MUTED, linewidth=1)
        axes.barh(places, values, height=0.56, color=ACCENT, alpha=0.28)
        known = [k for k, line in enumerate(lines) if math.isfinite(line.error)]
        axes.errorbar(
            [values[k] for k in known], [places[k] for k in known],
            xerr=[NORMAL_90 * lines[k].error for k in known],
            fmt="none", ecolor=ACCENT, elinewidth=2, capsize=0,
        )  # fmt: skip
        axes.plot(values, places, "o", color=ACCENT, markersize=5 if width == WIDE else 3.5)
        axes.locator_params(axis="x", nbins=7 if width == WIDE else 3)
        axes.set_xlabel(what)

    listed = "; ".join(_in_words(line) for line in lines)
    return plot(name, f"The largest values. {plain(listed)}.", draw)


def of_ratios(name: str, terms: Sequence[Term], kind: str) -> Plot:
    """The ratios of odds or rates of some terms on a logarithmic axis, with their intervals."""
    low, high = RATIOS
    points = np.clip([[t.ratio, t.ratio_low, t.ratio_high] for t in terms], low, high)

    def draw(figure: Any, width: float) -> None:
        axes, places = _forest(figure, [term.name for term in terms], width)
        axes.set_xscale("log")
        axes.axvline(1, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.hlines(places, points[:, 1], points[:, 2], color=ACCENT, linewidth=2)
        axes.plot(points[:, 0], places, "s", color=ACCENT, markersize=5 if width == WIDE else 3.5)
        _log_ticks(axes, points, 7 if width == WIDE else 4)
        axes.set_xlabel(f"{kind} ratio")
        if width == WIDE:
            ratios = axes.secondary_yaxis("right")
            ratios.set_yticks(places, [_ratio_in_words(t) for t in terms])
            ratios.tick_params(length=0)
            ratios.spines["right"].set_visible(False)

    listed = "; ".join(f"{shortened(t.name, 60)}: {_ratio_in_words(t)}" for t in terms)
    return plot(name, f"The {kind} ratios. {plain(listed)}.", draw)


def _log_ticks(axes: Any, points: np.ndarray, most: int) -> None:
    """Round numbers on a logarithmic axis; 1 is one of them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    low, high = min(float(np.nanmin(points)), 1.0), max(float(np.nanmax(points)), 1.0)
    if high <= 4 * low:
        ticks = np.asarray(MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high))
    else:
        powers = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = np.outer(powers, [1, 2, 5] if len(powers) <= 3 else [1]).ravel()
        ticks = ticks[:: max(1, math.ceil(len(ticks) / (2 * most)))]
    ticks = np.union1d(ticks[(ticks >= low / 1.05) & (ticks <= 1.05 * high)], [1.0])
    axes.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _ratio_in_words(term: Term) -> str:
    return f"{term.ratio:.3g} ({term.ratio_low:.3g} to {term.ratio_high:.3g})"


def _in_words(line: Line) -> str:
    error = f" plus or minus {line.error:.2g}" if math.isfinite(line.error) else ""
    return f"{shortened(line.name, 60)}: {line.value:.3g}{error}"


def of_budget(times: list[datetime], totals: list[float], ceiling: float) -> Plot:
    """What was spent after each charge, under the ceiling."""
    calendar = len(times) > 1 and times[-1] - times[0] >= _CALENDAR

    def draw(figure: Any, width: float) -> None:
        figure.set_figheight(2.7)
        axes = figure.subplots()
        x: list[Any] = list(times) if calendar else list(range(1, len(times) + 1))
        after = x[-1] + (x[-1] - x[0]) / 20 if calendar else x[-1] + 1
        path, spent = [x[0], *x, after], [0.0, *totals, totals[-1]]
        axes.step(path, spent, where="post", color=ACCENT, linewidth=2.2)
        axes.fill_between(path, spent, step="post", color=ACCENT, alpha=0.16, linewidth=0)
        axes.axhline(ceiling, color=ALARM, linewidth=1.6, linestyle=(0, (5, 3)))
        axes.annotate(
            f"ceiling {ceiling:g}", (1, ceiling), xycoords=("axes fraction", "data"),
            xytext=(0, 4), textcoords="offset points", ha="right", color=ALARM,
        )  # fmt: skip
        axes.set_ylim(0, 1.18 * max(ceiling, totals[-1]))
        axes.grid(axis="y", linewidth=0.7)
        axes.set_ylabel("epsilon spent")
        if calendar:
            _dates(axes, width)
        else:
            axes.set_xlim(x[0], after)
            step = max(1, len(x) // (10 if width == WIDE else 5))
            ticks = list(range(1, len(x) + 1, step))
            axes.set_xticks([k + 0.5 for k in ticks], [str(k) for k in ticks])
            axes.set_xlabel("charge")
        axes.tick_params(length=0)

    label = (
        f"Epsilon spent after each of {number_of(len(totals), 'charge')}: at the end "
        f"{totals[-1]:.4g} of {ceiling:g}."
    )
    return plot("budget", label, draw)


def _dates(axes: Any, width: float) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=8 if width == WIDE else 4)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_xlabel("time of the charge (UTC)")
