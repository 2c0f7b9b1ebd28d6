"""The numbers of a fitted model with their names, for people to read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.estimators.description import ModelDescription, describe

#: What the intercept is called among the terms of a summary.
INTERCEPT = "(intercept)"


@dataclass(frozen=True)
class Line:
    """One column of a model: NaN for an error that nobody knows, 0 for no place in the order."""

    name: str
    value: float
    error: float
    order: int


@dataclass(frozen=True)
class Coefficients:
    """The coefficients of one linear function, or means of columns: NaN for what nobody knows."""

    #: The class that they speak for, or "".
    label: str
    values: np.ndarray
    errors: np.ndarray
    #: The place of each column in the order in which columns were selected, 0 for the others.
    order: np.ndarray
    #: None for columns that are only numbered.
    names: Any = field(default=None, repr=False)
    intercept: float = math.nan
    intercept_error: float = math.nan
    #: Columns that are in the model whatever a search finds.
    unpenalized: tuple[int, ...] = ()
    #: Of the values and, last, of the intercept, and the part of this that is a guess; None where
    #: nobody knows them.
    covariance: np.ndarray | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def n_nonzero(self) -> int:
        return int(np.count_nonzero(self.values))

    @property
    def ordered(self) -> bool:
        """Whether the columns were selected one after the other."""
        return bool(np.any(self.order))

    @property
    def has_errors(self) -> bool:
        return bool(np.any(np.isfinite(self.errors[self.values != 0])))

    @property
    def known(self) -> np.ndarray:
        """Which columns are in the model with an error that is known."""
        return (self.values != 0) & np.isfinite(self.errors) & (self.errors > 0)

    def by_size(self) -> np.ndarray:
        """The columns that are not 0, the largest first; those of an unknown error come last.

        Where rows hardly vary, as at a knot that no value is near, a large coefficient is noise.
        """
        places = np.flatnonzero(self.values)
        unknown = ~np.isfinite(self.errors[places])
        return places[np.lexsort((-np.abs(self.values[places]), unknown))]

    def largest(self, most: int) -> list[Line]:
        """At most so many of the columns that are not 0, in the order of `by_size`."""
        return [self._line(int(j)) for j in self.by_size()[:most]]

    def name(self, j: int) -> str:
        """What a column is called."""
        return f"x[{j}]" if self.names is None else str(self.names[j])

    def _line(self, j: int) -> Line:
        value, error = float(self.values[j]), float(self.errors[j])
        return Line(self.name(j), value, error, int(self.order[j]))


def coefficients(model: Any, names: Any = None) -> list[Coefficients]:
    """What a fitted estimator, or a model learned from reports, says about its columns.

    One for each linear function: none for a kernel, and one for each class if there are more than
    two. By default columns have the names that the fit saw.
    """
    about = describe(model)
    if not about.linear:
        return []
    found = _means(model, about) if about.output == "mean" else _functions(model, about)
    return found if names is None else [_renamed(each, names) for each in found]


def _renamed(coefficients: Coefficients, names: Any) -> Coefficients:
    if len(names) != coefficients.size:
        raise InvalidArgument(
            f"names has {len(names)} names, and the model {coefficients.size} columns. Pass one "
            "for each."
        )
    return replace(coefficients, names=names)


def _means(model: Any, about: ModelDescription) -> list[Coefficients]:
    values, errors = (
        (model.mean, model.errors) if about.collected else (model.mean_, model.mean_error_)
    )
    return [Coefficients("", values, errors, np.zeros(len(values), dtype=int), about.names)]


def _functions(model: Any, about: ModelDescription) -> list[Coefficients]:
    if about.collected:
        order = np.zeros(len(model.coef), dtype=int)
        values = (model.coef, model.errors, order, about.names, model.intercept)
        return [Coefficients(about.function_labels[0], *values)]
    coef, errors = np.atleast_2d(model.coef_), np.atleast_2d(model.coef_error_)
    order = np.atleast_2d(getattr(model, "selection_order_", np.zeros(coef.shape, dtype=int)))
    unknown = np.full(len(coef), math.nan)
    fitted = getattr(model, "has_intercept", True)
    intercepts = np.atleast_1d(model.intercept_) if fitted else unknown
    intercept_errors = np.atleast_1d(getattr(model, "intercept_error_", unknown))
    names, unpenalized = about.names, tuple(getattr(model, "unpenalized_", ()))
    if names is not None and len(names) != coef.shape[1]:  # of rows that were projected before
        names = None
    known = getattr(model, "coef_covariance_", None)
    covariances = [None] * len(coef) if known is None else known.reshape(-1, *known.shape[-3:])
    return [
        Coefficients(
            label, coef[k], errors[k], order[k], names, float(intercepts[k]),
            float(intercept_errors[k]), unpenalized, covariances[k],
        )
        for k, label in enumerate(about.function_labels)
    ]  # fmt: skip
