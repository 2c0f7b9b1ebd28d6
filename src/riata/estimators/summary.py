"""What a fitted model says about its columns: estimates, errors, intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from riata.data.schema.units import original_units
from riata.errors import InvalidArgument
from riata.estimators.advice import advice
from riata.estimators.coefficients import INTERCEPT, Coefficients, coefficients
from riata.estimators.description import ModelDescription, describe
from riata.estimators.summary_notes import summary_notes
from riata.losses import Logistic
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
    ratio, ratio_low, ratio_high : float
        The odds ratio of one unit, and its interval.
    """

    name: str
    estimate: float
    error: float = math.nan
    low: float = math.nan
    high: float = math.nan
    z: float = math.nan
    p: float = math.nan
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
        return any(math.isfinite(term.error) for term in self.terms)


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
    odds : bool
        Whether estimates are log-odds, and have odds ratios.
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
    odds: bool
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
                "conf.low": term.low,
                "conf.high": term.high,
                **(_ratio_record(term) if self.odds else {}),
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
            raise InvalidArgument(f'what={what!r} is not known. Use one of ["tidy", "glance"].')
        try:
            import pandas as pd
        except ImportError:
            raise InvalidArgument(
                "to_frame needs the package pandas, which is not installed. Install it, or use "
                "records()."
            ) from None
        return pd.DataFrame(self.records() if what == "tidy" else [self.glance])


def _ratio_record(term: Term) -> dict[str, float]:
    return {
        "odds.ratio": term.ratio,
        "odds.ratio.low": term.ratio_low,
        "odds.ratio.high": term.ratio_high,
    }


def normal_quantile(level: float) -> float:
    """How many standard errors an interval of this level reaches to each side."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InvalidArgument(f"level={level!r} must be a number between 0 and 1, such as 0.95.")
    return float(ndtri((1 + level) / 2))


def confidence_intervals(model: Any, level: float = LEVEL) -> np.ndarray:
    """Of each of `coef_`, in its units: an array with a last axis for the two ends."""
    reach = normal_quantile(level) * np.asarray(model.coef_error_)
    return np.stack([model.coef_ - reach, model.coef_ + reach], axis=-1)


def summarize(model: Any, level: float = LEVEL, *, most: int | None = None) -> Summary:
    """The summary of a fitted estimator, or of a model that was learned from reports.

    Parameters
    ----------
    model : fitted estimator or LocalModel
    level : float, default=0.95
        Of the intervals.
    most : int, optional
        How many terms of each function it has, the largest first. By default all that are not 0.
    """
    reach, about, found = normal_quantile(level), describe(model), coefficients(model)
    statement: Statement = model.privacy if about.collected else model.privacy_
    units = _units(about, found)
    lines = _lines(model, about, len(found))
    what = "mean" if about.output == "mean" else "coefficient"
    functions = tuple(
        _function(each, units, None if lines is None else lines[k], reach, what, most)
        for k, each in enumerate(found)
    )
    gains = _gains(model, len(found))
    made = Summary(
        model=about.name,
        facts=_facts(about, statement, gains),
        functions=functions,
        level=level,
        what=what,
        odds=lines is not None,
        notes=summary_notes(about, found, functions, lines),
        gains=gains,
        glance=_glance(about, statement, gains, functions),
    )
    return replace(made, advice=advice(about, made))


def _units(about: ModelDescription, found: list[Coefficients]) -> tuple[np.ndarray, np.ndarray]:
    size = found[0].size if found else 0
    if about.schema is None or about.schema.n_features != size:
        return np.ones(size), np.zeros(size)
    return original_units(about.schema)


def _lines(model: Any, about: ModelDescription, functions: int) -> np.ndarray | None:
    """A slope and an intercept for each function, which make log-odds of margins; or None.

    Of classes that were fitted together only differences of functions are log-odds.
    """
    if about.output != "label" or not about.linear or about.multinomial:
        return None
    if about.collected or about.task is not None:
        return np.tile([1.0, 0.0], (functions, 1))
    loss = getattr(model, "loss", None)
    if not about.probabilities or (loss is not None and not isinstance(loss, Logistic)):
        return None
    return np.atleast_2d(getattr(model, "calibration_", np.tile([1.0, 0.0], (functions, 1))))


def _function(
    found: Coefficients,
    units: tuple[np.ndarray, np.ndarray],
    line: np.ndarray | None,
    reach: float,
    what: str,
    most: int | None,
) -> FunctionSummary:
    scales, centres = units
    places = found.by_size()
    slope = math.nan if line is None else float(line[0])
    terms = [
        _term(found.name(int(j)), *_scaled(found, int(j), scales[j]), reach, slope, what)
        for j in places[:most]
    ]
    if math.isfinite(found.intercept):
        moved = float((found.values[places] * centres[places] / scales[places]).sum())
        error = math.nan if moved else found.intercept_error
        terms.insert(0, _term(INTERCEPT, found.intercept - moved, error, reach, math.nan, what))
    return FunctionSummary(found.label, tuple(terms), found.n_nonzero, found.size)


def _scaled(found: Coefficients, j: int, scale: float) -> tuple[float, float]:
    return float(found.values[j] / scale), float(found.errors[j] / scale)


def _term(name: str, estimate: float, error: float, reach: float, slope: float, what: str) -> Term:
    known = math.isfinite(error) and error > 0
    low, high = (estimate - reach * error, estimate + reach * error) if known else (math.nan,) * 2
    tested = known and what == "coefficient"
    z = estimate / error if tested else math.nan
    ratios = [_exp(slope * value) for value in (estimate, low, high)]
    if slope < 0:
        ratios[1:] = ratios[:0:-1]
    error = error if known else math.nan
    return Term(name, estimate, error, low, high, z, 2 * float(ndtr(-abs(z))), *ratios)


def _exp(value: float) -> float:
    return math.inf if value > 700 else math.exp(value)


def _gains(model: Any, functions: int) -> tuple[tuple[float, float], ...]:
    """The private estimates of how well the rows of the fit are explained, with their errors."""
    unknown = np.full(functions, math.nan)
    gains = np.atleast_1d(getattr(model, "training_fit_", unknown))
    errors = np.atleast_1d(getattr(model, "training_fit_error_", unknown))
    return tuple((float(g), float(e)) for g, e in zip(gains, errors, strict=True))


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
    return tuple(facts)


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
