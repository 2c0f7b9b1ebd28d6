"""A model card: what the model is for, what it was made of, and where it ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.estimators.base import PrivateLinearModel
from riata.estimators.coefficients import Coefficients
from riata.estimators.description import ModelDescription, describe
from riata.local.learners.model import LocalModel
from riata.privacy.statement import Statement
from riata.wording import number_of

Card = list[tuple[str, list[str]]]


def card(model: Any, statement: Statement, found: list[Coefficients]) -> Card:
    """Headings with sentences."""
    about = describe(model)
    return [
        ("What it is", _what(model, about)),
        ("Meant for", _uses(statement, found)),
        ("Made of", [*_data(statement), *_bounds(model)]),
        ("How well it fits", _fit(model, about)),
        ("Limits", _limits(found)),
        ("People", _people(statement)),
    ]


def _what(model: Any, about: ModelDescription) -> list[str]:
    if about.collected:
        kind = model.task.kind
        target = "" if model.task.target is None else f" of “{model.task.target.name}”"
        what = {
            "mean": "The mean answer to each question",
            "sparse-mean": "The mean answer to each question, its centre where it could be noise",
            "logistic": f"The log odds{target}, as a weighted sum of answers",
            "kernel": f"A smooth prediction{target} by random Fourier features",
        }.get(kind, f"A prediction{target} as a weighted sum of answers")
        return [f"{what}, learned from {model.reports:,} randomised reports."]
    if about.output == "mean":
        return [f"A {about.name}: the mean of each column."]
    if not about.linear:
        return [f"A {about.name}: predicts a number by random Fourier features of all columns."]
    if about.output == "label":
        number = len(about.labels)
        return [f"A {about.name}: tells {number} classes apart by weighted sums of columns."]
    return [f"A {about.name}: predicts a number by a weighted sum of columns."]


def _uses(statement: Statement, found: list[Coefficients]) -> list[str]:
    missing = "the middle of its bounds" if statement.adjacency == "local" else "0"
    uses = [
        "Statements about many people, and predictions for rows that are read like those of the "
        f"fit: a missing value counts as {missing}, and values outside the bounds are clipped.",
        "Not for decisions about a single person without somebody who answers for them.",
    ]
    if found:
        uses.append(
            "A coefficient says what goes together in the data with the other columns held fixed. "
            "It does not say what causes what."
        )
    return uses


def _data(statement: Statement) -> list[str]:
    public = statement.public
    if "reports" in public:
        return [
            f"{number_of(public['reports'], 'report')} about "
            f"{number_of(public['features'], 'column')}. No answer was ever collected."
        ]
    lines = [f"{number_of(public['rows'], 'row')} of {number_of(public['columns'], 'column')}."]
    if "unpenalized columns" in public:
        lines.append(f"Always in the model: {public['unpenalized columns']}.")
    if "classes" in public:
        lines.append(f"Classes: {public['classes']}.")
    return lines


def _bounds(model: Any) -> list[str]:
    if isinstance(model, LocalModel):
        return ["The bounds of each answer stand in the task, which is public."]
    bounds = model.row_bounds() if isinstance(model, PrivateLinearModel) else model.bounds
    return [bounds_in_words(bounds), "Bounds were declared, and never taken from the rows."]


def bounds_in_words(bounds: Bounds) -> str:
    """The promise about one row."""
    if bounds.norm == "l2":
        rows = f"Each row has a Euclidean length of at most {bounds.x:g}"
    elif bounds.norm != "inf":
        rows = f"Each row has an l{bounds.order:g} norm of at most {bounds.x:g}"
    elif np.ndim(bounds.x) == 0:
        rows = f"Each value of a row lies between {-bounds.x:g} and {bounds.x:g}"
    else:
        low, high = float(bounds.x.min()), float(bounds.x.max())
        rows = f"Each column has a bound of its own, from {low:g} to {high:g}"
    if bounds.length is not None:
        rows += f", and the row has a Euclidean length of at most {bounds.length:.4g}"
    if bounds.nonnegative:
        rows += ", and no value is negative"
    if bounds.y is not None:
        rows += f"; the target lies between {-bounds.y:g} and {bounds.y:g}"
    return f"{rows}. Rows that break this are clipped."


def _fit(model: Any, about: ModelDescription) -> list[str]:
    if isinstance(model, LocalModel) or hasattr(model, "signal_"):
        signal = model.signal if isinstance(model, LocalModel) else model.signal_
        if signal:
            return ["The reports show more than noise."]
        return ["No signal: the reports do not show more than noise."]
    gains = np.atleast_1d(model.training_fit_)
    errors = np.atleast_1d(model.training_fit_error_)
    known = [
        f"{gain:.3f} ± {error:.3f}" + (f" (class {label})" if len(gains) > 1 else "")
        for gain, error, label in zip(gains, errors, about.function_labels, strict=True)
        if math.isfinite(gain)
    ]
    if not known:
        return [
            "Not estimated by this solver. A score on the training rows would be another look at "
            "them that nobody has paid for; take rows that were held out."
        ]
    return [
        f"{', '.join(known)} on the training rows, as a private estimate with its standard error: "
        "1 is a perfect fit, and 0 that of the best constant.",
        "Rows that were held out say more about new people.",
    ]


def _limits(found: list[Coefficients]) -> list[str]:
    limits = ["The noise that protects people also blurs the model. Another fit would differ."]
    if any(each.n_nonzero < each.size for each in found):
        limits.append("A column that is left out may still matter: noise can hide a small effect.")
    if any(each.has_errors for each in found):
        limits.append(
            "Intervals cover what the noise and the rows leave open. They do not cover that "
            "columns were selected, nor that a weighted sum may be the wrong kind of model."
        )
    elif found:
        limits.append("This solver says nothing about the errors of its coefficients.")
    return limits


def _people(statement: Statement) -> list[str]:
    kept = "the reports" if statement.adjacency == "local" else "the rows"
    return [
        "Noise hits small groups hardest: what a private model says about few people is mostly "
        "noise. Check how it treats them before it is used on them.",
        "Privacy does not make a harmful use harmless. Ask whom a wrong prediction would hurt.",
        f"Delete {kept} when they are no longer needed: the guarantee is about the model.",
    ]
