"""The numbers of a fitted model with their names, for people to read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.local.learners.model import LocalModel

MEANS = ("mean", "sparse-mean")


@dataclass(frozen=True)
class Line:
    """One column of a model: NaN for an error that nobody knows, 0 for no place in the order."""

    name: str
    value: float
    error: float
    order: int


@dataclass(frozen=True)
class Coefficients:
    """The coefficients of one linear function, or the means of columns.

    Attributes
    ----------
    label : str
        The class that they speak for, or "".
    values, errors : ndarray
        NaN where the error is not known.
    order : ndarray of int
        The place of each column in the order in which columns were selected, 0 for those that were
        not.
    names : sequence of str, or None
        None for columns that are only numbered.
    intercept, intercept_error : float
        NaN for none.
    """

    label: str
    values: np.ndarray
    errors: np.ndarray
    order: np.ndarray
    names: Any = field(default=None, repr=False)
    intercept: float = math.nan
    intercept_error: float = math.nan

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

    def largest(self, most: int) -> list[Line]:
        """The columns that are not 0, at most so many, the largest first."""
        places = np.flatnonzero(self.values)
        by_size = np.argsort(-np.abs(self.values[places]), kind="stable")
        return [self._line(int(j)) for j in places[by_size[:most]]]

    def _line(self, j: int) -> Line:
        name = f"x[{j}]" if self.names is None else str(self.names[j])
        return Line(name, float(self.values[j]), float(self.errors[j]), int(self.order[j]))


def coefficients(model: Any, names: Any = None) -> list[Coefficients]:
    """What a fitted estimator, or a model learned from reports, says about its columns.

    Parameters
    ----------
    model : fitted estimator or LocalModel
    names : sequence of str, optional
        Of the columns. By default those that the fit saw.

    Returns
    -------
    list of Coefficients
        One for each linear function: none for a kernel, and one for each class if there are more
        than two.
    """
    found = _found(model)
    return found if names is None else [_named(each, names) for each in found]


def _named(found: Coefficients, names: Any) -> Coefficients:
    if len(names) != found.size:
        raise InvalidArgument(
            f"names has {len(names)} names, and the model {found.size} columns. Pass one for each."
        )
    return replace(found, names=names)


def _found(model: Any) -> list[Coefficients]:
    if isinstance(model, LocalModel):
        return _of_reports(model)
    if hasattr(model, "mean_"):
        return [_made(model, "", model.mean_, model.mean_error_)]
    if not hasattr(model, "coef_"):
        return []
    coef, errors = np.atleast_2d(model.coef_), np.atleast_2d(model.coef_error_)
    order = np.atleast_2d(getattr(model, "selection_order_", np.zeros(coef.shape, dtype=int)))
    intercepts = np.atleast_1d(model.intercept_)
    unknown = np.full(len(coef), math.nan)
    intercept_errors = np.atleast_1d(getattr(model, "intercept_error_", unknown))
    return [
        _made(
            model, label, coef[k], errors[k], order[k],
            float(intercepts[k]), float(intercept_errors[k]),
        )
        for k, label in enumerate(_labels(model, len(coef)))
    ]  # fmt: skip


def _made(model: Any, label: str, values: np.ndarray, errors: np.ndarray, *more: Any) -> Any:
    names = getattr(model, "feature_names_in_", None)
    if names is not None and len(names) != len(values):  # of rows that were projected before
        names = None
    order = more[0] if more else np.zeros(len(values), dtype=int)
    return Coefficients(label, values, errors, order, names, *more[1:])


def _labels(model: Any, functions: int) -> list[str]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [""]
    return [str(one) for one in (classes if functions > 1 else classes[1:])]


def _of_reports(model: LocalModel) -> list[Coefficients]:
    if model.task.kind == "kernel":
        return []
    mean = model.task.kind in MEANS
    values = model.mean if mean else model.coef
    label = "yes" if model.task.kind == "logistic" else ""
    intercept = math.nan if mean else model.intercept
    order = np.zeros(len(values), dtype=int)
    return [Coefficients(label, values, model.errors, order, model.names, intercept)]
