"""Sections of a report about an evaluation: scores, ROC, calibration and residuals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from riata.evaluation import Evaluation, PrivateScore
from riata.report.page import Section
from riata.report.plots import ACCENT, MUTED, WIDE

Draw = Callable[[Any, float], None]


def evaluation_sections(found: Evaluation | PrivateScore) -> list[Section]:
    """What a report shows about an evaluation: pass them as ``sections=``."""
    if isinstance(found, PrivateScore):
        return [Section("Score on private rows", str(found).splitlines())]
    text = [f"On {found.n_rows:,} rows that are public, or that nobody needs to protect."]
    if found.n_unknown:
        text.append(found.unknown_note)
    sections = [Section("Scores", text, ("score", "model", "constant"), found.rows())]
    if found.roc is not None:
        sections.append(_roc(found, *found.roc))
    if found.calibration is not None:
        sections.append(_calibration(*found.calibration))
    if found.residuals is not None:
        sections.append(_residuals(*found.residuals))
    return sections


def _square(axes: Any, width: float, x: str, y: str) -> None:
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xlim=(0, 1), ylim=(0, 1.005), xlabel=x, ylabel=y)
    axes.grid(linewidth=0.7)
    axes.tick_params(length=0)


def _on_figure(draw: Callable[[Any, float], None]) -> Draw:
    def on(figure: Any, width: float) -> None:
        figure.set_figheight(4.2 if width == WIDE else 3.2)
        draw(figure.subplots(), width)

    return on


def _roc(found: Evaluation, false: np.ndarray, true: np.ndarray) -> Section:
    def draw(axes: Any, width: float) -> None:
        axes.plot(false, true, color=ACCENT, linewidth=2.2)
        _square(axes, width, "false positive rate", "true positive rate")

    area = found.scores["AUC"]
    return Section(
        "ROC",
        (
            f"The area under the curve is {area:.3f}: so often a row of the second class gets a "
            "higher score than one of the first. The dashed line is a coin.",
        ),
        draw=_on_figure(draw),
        label=f"The ROC curve. The area under it is {area:.3f}.",
    )


def _calibration(means: np.ndarray, happened: np.ndarray) -> Section:
    def draw(axes: Any, width: float) -> None:
        axes.plot(means, happened, "o-", color=ACCENT, linewidth=1.6, markersize=5)
        _square(axes, width, "predicted probability", "observed frequency")

    pairs = "; ".join(f"{one:.2f}: {other:.2f}" for one, other in zip(means, happened, strict=True))
    return Section(
        "Calibration",
        (
            "Rows in groups of equal size, by predicted probability. On the dashed line things "
            "happen as often as the model says.",
        ),
        draw=_on_figure(draw),
        label=f"Predicted probability and observed frequency. {pairs}.",
    )


def _residuals(predicted: np.ndarray, left: np.ndarray) -> Section:
    def draw(axes: Any, width: float) -> None:
        axes.axhline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.plot(predicted, left, "o", color=ACCENT, markersize=3, alpha=0.5)
        axes.set(xlabel="prediction", ylabel="target minus prediction")
        axes.grid(linewidth=0.7)
        axes.tick_params(length=0)

    quarter = np.quantile(left, [0.25, 0.5, 0.75])
    return Section(
        "Residuals",
        (f"Of {len(left):,} of the rows. A pattern says what the model misses.",),
        draw=_on_figure(draw),
        label=(
            "Targets minus predictions: half of them lie between "
            f"{quarter[0]:.3g} and {quarter[2]:.3g}, the middle is {quarter[1]:.3g}."
        ),
    )
