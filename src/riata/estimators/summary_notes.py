"""What is said below the table of a summary, and about the fit above it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from riata.data.schema.named_features import NamedFeatures
from riata.data.schema.schema import Schema
from riata.estimators.adjustment import MEANINGS
from riata.estimators.coefficients import INTERCEPT, Coefficients
from riata.estimators.description import ModelDescription
from riata.solvers import SOLVERS, WhitenedGradient
from riata.wording import listed

if TYPE_CHECKING:
    from riata.estimators.summary import FunctionSummary

#: What has errors, where a solver has none.
INSTEAD = (
    "For intervals, name the columns of interest before you look, and fit them alone, of a budget "
    'of their own, with solver="whitened-gradient".'
)

#: A private estimate of the fit above the first, with an error below the second, is nearly perfect.
PERFECT, SURE = 0.98, 0.1

#: What intervals are about, of numbers that are fitted by gradients with clipped summands.
ROBUST = (
    "Intervals are for coefficients of the robust model of the population: the one in which no row "
    "counts more than where gradients were clipped. It is that of least squares, unless a few rows "
    "with large residuals decide about that."
)

#: So many columns that are not 0 are shown everywhere, and the largest of more.
SHOWN_WHOLE = 10


def summary_notes(
    about: ModelDescription,
    found: list[Coefficients],
    functions: tuple[FunctionSummary, ...],
    lines: np.ndarray | None,
    correction: str | None,
    level: float,
    each_level: float,
    solver: str,
) -> tuple[str, ...]:
    """What the numbers of a model mean, and what they do not."""
    if not found:
        return ("This model has no coefficients: it is no linear function of the columns.",)
    notes = []
    if any(each.has_errors for each in functions):
        notes.append(
            "Standard errors count the noise of the fit and that of sampling rows. They do not "
            "count that columns were selected, nor that clipped residuals or a penalty move the "
            "estimates: do not take p-values for exact."
        )
        if solver == WhitenedGradient.name and about.output == "number" and lines is None:
            notes.append(ROBUST)
    if each_level != level:
        notes.append(
            f"Intervals count that columns were selected: each is one of {100 * each_level:.6g}%, "
            f"so that {100 * level:.4g}% of those shown hold."
        )
    notes += _adjustment_note(functions, correction, level)
    if found[0].unpenalized:
        notes.append(
            f"{listed([found[0].name(j) for j in found[0].unpenalized])}: always in the model. "
            "Nobody selected them, so that their intervals and p-values count no selection."
        )
    if any(not math.isfinite(t.error) for f in functions for t in f.terms if t.name != INTERCEPT):
        some = "where the table is blank" if any(f.has_errors for f in functions) else "here"
        notes.append(
            f"The solver says nothing about the errors of coefficients {some}: no interval is "
            "shown because none is known."
        )
        if solver in SOLVERS and (why := SOLVERS[solver].errors_unknown):
            notes.append(f"{why} {INSTEAD}")
    if about.schema is not None:
        notes += _unit_note(about.schema, found)
        notes += _intercept_note(about.schema, found)
    if lines is not None and bool(np.any(lines != [1.0, 0.0])):
        notes.append(
            "Odds ratios include the calibration of the model, as its probabilities do "
            f"(slope {', '.join(f'{slope:.3g}' for slope in lines[:5, 0])}); its own noise is not "
            "in their intervals."
        )
    return tuple(notes)


def unknown_note(
    about: ModelDescription,
    gains: Sequence[tuple[float, float]],
    functions: Sequence[FunctionSummary],
) -> tuple[str, ...]:
    """What to do where no release says anything about how good a model is."""
    known = any(math.isfinite(gain) for gain, _ in gains)
    known = known or any(each.has_errors for each in functions)
    if known or not functions or about.collected or about.output == "mean":
        return ()
    return (
        "Nothing that was released says how good this model is: it may be no better than a "
        "constant. Score it on rows that were held out, with `riata evaluate`.",
    )


def fit_in_words(gains: Sequence[tuple[float, float]]) -> str:
    """The private estimate of the fit: of several classes, the smallest and the largest."""
    known = [(gain, error) for gain, error in gains if math.isfinite(gain)]
    if not known:
        return "not estimated by this solver"
    means = "(1 is perfect, 0 is no better than a constant)"
    if len(known) == 1:
        return f"{known[0][0]:.3f} ± {known[0][1]:.2g} {means}"
    low, high = min(known), max(known)
    return f"from {low[0]:.3f} ± {low[1]:.2g} to {high[0]:.3f} ± {high[1]:.2g}, by class {means}"


def suspicion(
    gains: Sequence[tuple[float, float]], functions: Sequence[FunctionSummary]
) -> tuple[str, ...]:
    """A doubt about a fit that is nearly perfect."""
    perfect = bool(gains) and all(gain > PERFECT and error < SURE for gain, error in gains)
    terms = [term.name for each in functions for term in each.terms if term.name != INTERCEPT]
    if not (perfect and terms):
        return ()
    return (
        "The model explains nearly everything. If that is too good to be true, a column may be "
        f"another form of the target: look at {terms[0]} first.",
    )


def _adjustment_note(
    functions: tuple[FunctionSummary, ...], correction: str | None, level: float
) -> list[str]:
    tested = any(math.isfinite(term.p_adjusted) for each in functions for term in each.terms)
    if correction is None or not tested:
        return []
    said = MEANINGS[correction].format(percent=100 * (1 - level))
    return [
        f"* marks an adjusted p of at most {1 - level:.3g} ({said}, as far as p-values hold). "
        "Columns that were left out count as tests."
    ]


def _unit_note(schema: Schema, found: list[Coefficients]) -> list[str]:
    """What coefficients mean, for the kinds of columns that have some."""
    if not isinstance(schema.features, NamedFeatures):
        return ["A coefficient is the change for one unit of the column in the file."]
    nonzero = np.any([each.values != 0 for each in found], axis=0)
    said = dict.fromkeys(
        meaning
        for feature, columns in zip(schema.features, schema.groups, strict=True)
        if nonzero[columns].any()
        for meaning in feature.meanings
    )
    if not said:
        return []
    some = bool((np.count_nonzero([each.values for each in found], axis=1) > SHOWN_WHOLE).any())
    order = " The largest are those that can change a prediction most." if some else ""
    return [f"A coefficient is, {'; '.join(said)}.{order}"]


def _intercept_note(schema: Schema, found: list[Coefficients]) -> list[str]:
    if not isinstance(schema.features, NamedFeatures) or len(found) > 1:
        return []
    moved = [
        (found[0].name(int(j)), centre)
        for feature, columns in zip(schema.features, schema.groups, strict=True)
        if feature.columns  # products have no centre of their own
        for j, centre in zip(columns, feature.units[1], strict=True)
        if centre and found[0].values[j]
    ]
    if not moved or not math.isfinite(found[0].intercept):
        return []
    at = ", ".join(f"{name} {centre:g}" for name, centre in moved[:4])
    at += " ..." if len(moved) > 4 else ""
    error = found[0].intercept_error
    known = f" ± {error:.2g}" if math.isfinite(error) else ""
    return [
        f"The intercept is where all numbers are 0. At the centres ({at}) it is "
        f"{found[0].intercept:.4g}{known}."
    ]
