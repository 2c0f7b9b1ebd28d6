"""What a fitted model says about its columns: estimates, errors, intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from riata.errors import InvalidArgument
from riata.estimators.adjustment import (
    CORRECTION,
    adjusted,
    check_correction,
    interval_level,
    p_values,
)
from riata.estimators.advice import advice
from riata.estimators.coefficients import INTERCEPT, Coefficients, coefficients
from riata.estimators.description import ModelDescription, describe
from riata.estimators.ratios import calibration_lines, ratio_kind
from riata.estimators.summary_notes import fit_in_words, summary_notes, suspicion, unknown_note
from riata.privacy.statement import Statement
from riata.wording import number_of

#: The level of intervals, unless somebody asks for another.
LEVEL = 0.95


@dataclass(frozen=True)
class Term:
    """One coefficient. NaN stands for what nobody knows.

    Attributes
    ----------
    name : str
    estimate, error : float
        The coefficient and its standard error.
    low, high : float
        The ends of its interval.
    z, p : float
        The estimate over its error, and the probability of one at least as large if the true
        coefficient were 0.
    p_adjusted : float
        The same with a correction for the number of terms that were tested.
    ratio, ratio_low, ratio_high : float
        The ratio of odds or rates for one unit, and its interval.
    """

    name: str
    estimate: float
    error: float = math.nan
    low: float = math.nan
    high: float = math.nan
    z: float = math.nan
    p: float = math.nan
    p_adjusted: float = math.nan
    ratio: float = math.nan
    ratio_low: float = math.nan
    ratio_high: float = math.nan


@dataclass(frozen=True)
class FunctionSummary:
    """The terms of one linear function, the largest first: of a class, or of the whole model."""

    label: str
    terms: tuple[Term, ...]
    n_nonzero: int
    size: int

    @property
    def has_errors(self) -> bool:
        """Whether errors are known of columns, or of an intercept that stands alone."""
        columns = [term for term in self.terms if term.name != INTERCEPT]
        return any(math.isfinite(term.error) for term in columns or self.terms)


@dataclass(frozen=True)
class Summary:
    """A fitted model in numbers, as text, as a page and as tables.

    Everything in it follows from what was released: it reads no row and costs nothing. Print it,
    or take `to_frame`.

    Attributes
    ----------
    model : str
        The estimator.
    facts : tuple of (str, str)
        Guarantee, number of rows, solver, and the private estimate of the fit.
    functions : tuple of FunctionSummary
        One, or one for each class.
    level : float
        Of the intervals.
    what : str
        What the estimates are: "coefficient" or "mean".
    ratio : str
        What the exponentials of estimates are ratios of: "odds", "rate", "hazard", or "" for
        nothing.
    correction : str or None
        How `p_adjusted` counts the number of tests.
    notes : tuple of str
        What the numbers mean, and what they do not.
    gains : tuple of (float, float)
        For each function, the private estimate of its fit and the error of that.
    glance : dict
        One line about the model, as `to_frame("glance")` has it.
    advice : tuple of str
        If little or nothing could be learned: that, and what would help.
    """

    model: str
    facts: tuple[tuple[str, str], ...]
    functions: tuple[FunctionSummary, ...]
    level: float
    what: str
    ratio: str
    correction: str | None
    notes: tuple[str, ...]
    gains: tuple[tuple[float, float], ...]
    glance: dict[str, Any]
    advice: tuple[str, ...] = ()

    def __str__(self) -> str:
        from riata.estimators.summary_text import summary_text

        return summary_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from riata.estimators.summary_text import summary_html

        return summary_html(self)

    def discovered(self, term: Term) -> bool:
        """Whether a term is told from 0 at `1 - level`, with the correction."""
        return term.p_adjusted <= 1 - self.level

    def records(self) -> list[dict[str, Any]]:
        """One dict for each term, with the names that R's broom has; NaN for what is unknown."""
        return [
            {
                **({"y.level": each.label} if len(self.functions) > 1 else {}),
                "term": term.name,
                "estimate": term.estimate,
                "std.error": term.error,
                "statistic": term.z,
                "p.value": term.p,
                **({"p.adjusted": term.p_adjusted} if self.correction else {}),
                "conf.low": term.low,
                "conf.high": term.high,
                **(_ratio_record(term, self.ratio) if self.ratio else {}),
            }
            for each in self.functions
            for term in each.terms
        ]

    def to_frame(self, what: str = "tidy") -> Any:
        """A pandas frame.

        Parameters
        ----------
        what : {"tidy", "glance"}, default="tidy"
            "tidy" has a line for each term that is not 0 and for the intercept, "glance" one line
            for the model. Columns have the names of R's broom.
        """
        if what not in ("tidy", "glance"):
            known = '["tidy", "glance"], or model.augment(X) for rows'
            raise InvalidArgument(f"what={what!r} is not known. Use one of {known}.")
        try:
            import pandas as pd
        except ImportError:
            raise InvalidArgument(
                "to_frame needs the package pandas, which is not installed. Install it, or use "
                "records()."
            ) from None
        return pd.DataFrame(self.records() if what == "tidy" else [self.glance])


def _ratio_record(term: Term, kind: str) -> dict[str, float]:
    return {
        f"{kind}.ratio": term.ratio,
        f"{kind}.ratio.low": term.ratio_low,
        f"{kind}.ratio.high": term.ratio_high,
    }


def normal_quantile(level: float) -> float:
    """How many standard errors an interval of this level reaches to each side."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InvalidArgument(f"level={level!r} must be a number between 0 and 1, such as 0.95.")
    return float(ndtri((1 + level) / 2))


def confidence_intervals(
    model: Any, level: float = LEVEL, correction: str | None = CORRECTION
) -> np.ndarray:
    """Of each of `coef_`, in its units: an array with a last axis for the two ends."""
    normal_quantile(level)  # which refuses what is no level
    each = interval_level(coefficients(model), level, correction)
    reach = np.full(np.shape(model.coef_), normal_quantile(each))
    reach[..., list(getattr(model, "unpenalized_", ()))] = normal_quantile(level)
    reach *= np.asarray(model.coef_error_)
    return np.stack([model.coef_ - reach, model.coef_ + reach], axis=-1)


def summarize(
    model: Any,
    level: float = LEVEL,
    *,
    correction: str | None = CORRECTION,
    most: int | None = None,
) -> Summary:
    """The summary of a fitted estimator, or of a model that was learned from reports.

    Parameters
    ----------
    model : fitted estimator or LocalModel
    level : float, default=0.95
        Of the intervals. Terms are marked at 1 - level.
    correction : {"by", "bh", "bonferroni"} or None, default="by"
        How adjusted p-values count the number of tests, over all columns and classes: control of
        the false discovery rate by Benjamini-Yekutieli or Benjamini-Hochberg, or of any false mark.
        Columns that were left out count, as tests with a p-value of 1. Intervals count the same:
        see `riata.estimators.adjustment.level_of_each`.
    most : int, optional
        How many terms of each function it has, the largest first. By default all that are not 0.
    """
    reach, about, found = normal_quantile(level), describe(model), coefficients(model)
    check_correction(correction)
    statement: Statement = model.privacy if about.collected else model.privacy_
    ratio = ratio_kind(model, about)
    lines = calibration_lines(model, len(found)) if ratio else None
    what = "mean" if about.output == "mean" else "coefficient"
    tested = what == "coefficient"
    each = interval_level(found, level, correction) if tested else level
    look = _Look(*units_of(about, found), reach, normal_quantile(each), tested, most)
    p_adjusted = _adjusted(found, look, correction)
    functions = tuple(
        _function(one, look, math.nan if lines is None else float(lines[k][0]), p_adjusted[k])
        for k, one in enumerate(found)
    )
    gains, public = _gains(model, len(found)), (correction, level, each, statement.solver)
    notes = summary_notes(about, found, functions, lines, *public)
    made = Summary(
        model=about.name,
        facts=_facts(about, statement, gains),
        functions=functions,
        level=level,
        what=what,
        ratio=ratio,
        correction=correction,
        notes=notes + unknown_note(about, gains, functions) + suspicion(gains, functions),
        gains=gains,
        glance=_glance(about, statement, gains, functions)
        | {"sigma": getattr(model, "residual_spread_", math.nan)},
    )
    return replace(made, advice=advice(about, made))


@dataclass(frozen=True)
class _Look:
    """How terms are shown: units and centres of columns, and what is computed.

    Intervals reach `reach` errors, and those of selected columns `reach_of_selected`.
    """

    scales: np.ndarray
    centres: np.ndarray
    reach: float
    reach_of_selected: float
    tested: bool
    most: int | None


def units_of(about: ModelDescription, found: list[Coefficients]) -> tuple[np.ndarray, np.ndarray]:
    """Of each column, the units of the file in an encoded 1, and the value that became 0."""
    size = found[0].size if found else 0
    if about.schema is None or about.schema.n_features != size:
        return np.ones(size), np.zeros(size)
    return about.schema.features.units


def _adjusted(found: list[Coefficients], look: _Look, correction: str | None) -> list[np.ndarray]:
    """Adjusted p-values of all columns, over all functions together."""
    if not look.tested or not found:
        return [np.full(each.size, math.nan) for each in found]
    together = adjusted(np.concatenate([p_values(each) for each in found]), correction)
    return np.split(together, len(found))


def _function(
    found: Coefficients, look: _Look, slope: float, p_adjusted: np.ndarray
) -> FunctionSummary:
    scales, centres = look.scales, look.centres
    places = found.by_size()
    terms = [
        _term(
            found.name(j), found.values[j] / scales[j], found.errors[j] / scales[j], look, slope,
            float(p_adjusted[j]), named=j in found.unpenalized,
        )
        for j in map(int, places[: look.most])
    ]  # fmt: skip
    if math.isfinite(found.intercept):
        moved = float((found.values[places] * centres[places] / scales[places]).sum())
        error = math.nan if moved else found.intercept_error
        terms.insert(0, _term(INTERCEPT, found.intercept - moved, error, look, named=True))
    return FunctionSummary(found.label, tuple(terms), found.n_nonzero, found.size)


def _term(
    name: str,
    estimate: float,
    error: float,
    look: _Look,
    slope: float = math.nan,
    p_adjusted: float = math.nan,
    *,
    named: bool = False,
) -> Term:
    """One line; `named` says that nobody selected it."""
    known = math.isfinite(error) and error > 0
    error = float(error) if known else math.nan
    reach = look.reach if named else look.reach_of_selected
    low, high = estimate - reach * error, estimate + reach * error
    z = estimate / error if look.tested else math.nan
    ratios = [bounded_exp(slope * value) for value in (estimate, low, high)]
    if slope < 0:
        ratios[1:] = ratios[:0:-1]
    return Term(
        name, float(estimate), error, float(low), float(high), float(z),
        2 * float(ndtr(-abs(z))), p_adjusted, *ratios,
    )  # fmt: skip


def bounded_exp(value: float) -> float:
    return math.inf if value > 700 else math.exp(value)


def _gains(model: Any, functions: int) -> tuple[tuple[float, float], ...]:
    """The private estimates of how well the rows of the fit are explained, with their errors."""
    unknown = np.full(functions, math.nan)
    gains = np.atleast_1d(getattr(model, "training_fit_", unknown))
    errors = np.atleast_1d(getattr(model, "training_fit_error_", unknown))
    return tuple((float(g), float(e)) for g, e in zip(gains, errors, strict=True))


def _facts(
    about: ModelDescription, statement: Statement, gains: Sequence[tuple[float, float]]
) -> tuple[tuple[str, str], ...]:
    public = statement.public
    facts = []
    if about.schema is not None and about.schema.target is not None and about.schema.target.name:
        facts.append(("target", about.schema.target.name))
    facts.append(("guarantee", statement.sentence))
    if "reports" in public:
        facts.append(("reports", f"{public['reports']:,}"))
    elif "rows" in public:
        people = f", of {public['people']:,} people" if "people" in public else ""
        facts.append(("rows", f"{public['rows']:,}{people}"))
    facts.append(("solver", f"{statement.solver}, {number_of(statement.steps, 'step')}"))
    if about.task is None and about.linear:
        facts.append(("fit", fit_in_words(gains)))
    return (*facts, *about.facts)


def _glance(
    about: ModelDescription,
    statement: Statement,
    gains: Sequence[tuple[float, float]],
    functions: tuple[FunctionSummary, ...],
) -> dict[str, Any]:
    gain, error = gains[0] if len(gains) == 1 else (math.nan, math.nan)
    return {
        "nobs": statement.public.get("rows", statement.public.get("reports")),
        "r.squared": gain,
        "r.squared.error": error,
        "n.terms": sum(each.n_nonzero for each in functions),
        "n.columns": about.n_columns,
        "epsilon": statement.epsilon,
        "delta": statement.delta,
        "adjacency": statement.adjacency,
        "private": statement.private,
        "solver": statement.solver,
    }
