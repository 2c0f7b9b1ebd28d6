"""Plots in the colours of the page, each in a wide form and in one for phones."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from riata.drawing import inline_svg
from riata.estimators.coefficients import Line
from riata.report.text import plain, shortened

#: How many standard errors a 90% interval reaches to each side.
NORMAL_90 = 1.645

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
_LONGEST_NAME = {WIDE: 34, NARROW: 16}
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
    return Plot(label, _drawn(f"{name}-wide", draw, WIDE), _drawn(f"{name}-narrow", draw, NARROW))


def _drawn(name: str, draw: Callable[[Any, float], None], width: float) -> str:
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


def of_coefficients(name: str, lines: list[Line], what: str) -> Plot:
    """The largest coefficients with their intervals."""

    def draw(figure: Any, width: float) -> None:
        figure.set_figheight(0.6 + 0.27 * len(lines))
        axes = figure.subplots()
        places = list(range(len(lines)))[::-1]
        values = [line.value for line in lines]
        axes.axvline(0, color=MUTED, linewidth=1)
        axes.grid(axis="x", linewidth=0.7)
        axes.barh(places, values, height=0.56, color=ACCENT, alpha=0.28)
        known = [k for k, line in enumerate(lines) if math.isfinite(line.error)]
        axes.errorbar(
            [values[k] for k in known], [places[k] for k in known],
            xerr=[NORMAL_90 * lines[k].error for k in known],
            fmt="none", ecolor=ACCENT, elinewidth=2, capsize=0,
        )  # fmt: skip
        axes.plot(values, places, "o", color=ACCENT, markersize=5 if width == WIDE else 3.5)
        axes.set_yticks(places, [shortened(line.name, _LONGEST_NAME[width]) for line in lines])
        axes.tick_params(length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.set_ylim(-0.6, len(lines) - 0.4)
        axes.set_xlabel(what)

    listed = "; ".join(_in_words(line) for line in lines)
    return plot(name, f"The largest values. {plain(listed)}.", draw)


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
        f"Epsilon spent after each of {len(totals)} charges: at the end {totals[-1]:.4g} of "
        f"{ceiling:g}."
    )
    return plot("budget", label, draw)


def _dates(axes: Any, width: float) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=8 if width == WIDE else 4)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_xlabel("time of the charge (UTC)")
