"""A test that several coefficients of a model are 0 together, from what was released."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, erfc

from riata.arguments import is_whole
from riata.data.schema.named_features import NamedFeatures
from riata.errors import InvalidArgument
from riata.estimators.coefficients import Coefficients, coefficients
from riata.estimators.description import ModelDescription, describe
from riata.estimators.summary import units_of
from riata.solvers.empirical_bayes import FLAT_PART
from riata.wording import number_of, shown

#: Combinations of estimates with less than this part of the largest variance are not tested: in
#: float64 such a variance is rounding.
SMALLEST_SPREAD = 1e-10

#: Why nothing can be said about columns.
_LEFT_OUT = "The model left these columns out, and nobody knows how near to 0 they are: no test."
_UNKNOWN = "The solver says nothing about the errors of these columns: no test."


@dataclass(frozen=True, eq=False)
class FunctionTest:
    """The test of one linear function: of a class, or of the whole model.

    Attributes
    ----------
    label : str
        The class, or "".
    estimates, errors : ndarray
        Of the columns, in the units of the summary. NaN for an error that nobody knows.
    statistic : float
        Wald's, or without covariances the largest square of an estimate over its error. NaN if no
        error is known.
    df : int
        How many directions are tested. With covariances, those in which rows vary, and one for each
        column that the model left out, which can reject nothing; without, each column.
    p : float
        The probability of such a statistic, or at most this, if all true coefficients were 0.
    reason : str
        Why p is NaN, or "".
    """

    label: str
    estimates: np.ndarray
    errors: np.ndarray
    statistic: float
    df: int
    p: float
    reason: str


@dataclass(frozen=True, eq=False)
class JointTest:
    """Whether some coefficients are all 0. It follows from what was released, and costs nothing.

    Attributes
    ----------
    columns : tuple of str
    method : str
        "wald" for one column, or if the covariances of the estimates follow from the releases.
        "bonferroni" for several columns of other models, which is valid for all covariances: the
        smallest p-value times the number of columns.
    functions : tuple of FunctionTest
        One, or one for each class.
    """

    columns: tuple[str, ...]
    method: str
    functions: tuple[FunctionTest, ...]

    @property
    def p(self) -> float:
        """That all are 0 in all classes: the smallest p-value times the number of classes.

        NaN if none is known.
        """
        known = [each.p for each in self.functions if not math.isnan(each.p)]
        return min(1.0, len(self.functions) * min(known)) if known else math.nan

    def records(self) -> list[dict[str, Any]]:
        """One dict for each function, with the names that R's broom has."""
        return [
            {
                **({"y.level": each.label} if len(self.functions) > 1 else {}),
                "term": ", ".join(self.columns),
                "statistic": each.statistic,
                "df": each.df,
                "p.value": each.p,
                "method": self.method,
            }
            for each in self.functions
        ]

    def __str__(self) -> str:
        head = f"All of {shown(list(self.columns))} are 0 ({self.method})"
        lines = [
            (f"class {each.label}: " if each.label else "")
            + (each.reason or f"statistic {each.statistic:.4g}, df {each.df}, p {each.p:.3g}")
            for each in self.functions
        ]
        return "\n".join([head, *lines])

    __repr__ = __str__


def joint_test(model: Any, columns: Any) -> JointTest:
    """Test that the coefficients of some columns are all 0.

    Parameters
    ----------
    model : fitted estimator or LocalModel
    columns : str, int, or a sequence of them
        Names of features, which mean all their encoded columns, names of columns, or indices of
        `coef_`.
    """
    about, found = describe(model), coefficients(model)
    if not found or about.output == "mean":
        raise InvalidArgument(
            f"{about.name} has no coefficients, so there is nothing to test. Test a linear "
            "regression or a classifier."
        )
    places = columns_of(about, found[0], columns)
    scales, _ = units_of(about, found)
    names, at = tuple(found[0].name(j) for j in places), np.array(places)
    bounded = len(places) > 1 and found[0].covariance is None
    functions = tuple(_tested(each, at, scales) for each in found)
    return JointTest(names, "bonferroni" if bounded else "wald", functions)


def _tested(found: Coefficients, places: np.ndarray, scales: np.ndarray) -> FunctionTest:
    """Of several columns Bonferroni's test, or Wald's if covariances follow from releases.

    Wald's is of the directions whose error is known: of a choice, the differences.
    """
    covariance = found.covariance if len(places) > 1 else None
    values, errors = found.values[places], found.errors[places]
    errors = np.where(np.isfinite(errors) & (errors > 0) & (values != 0), errors, math.nan)
    facts = (found.label, values / scales[places], errors / scales[places])
    if covariance is None:
        squares = np.square(values / errors)
        squares = squares[~np.isnan(squares)]
    else:
        inside = places[values != 0]
        squares = known_squares(found.values[inside], covariance[:, inside][:, :, inside])
    if not len(squares):
        reason = _UNKNOWN if values.any() else _LEFT_OUT
        return FunctionTest(*facts, math.nan, len(places), math.nan, reason)
    if covariance is None:
        largest = float(squares.max())
        p = min(1.0, len(places) * float(erfc(math.sqrt(largest / 2))))
        return FunctionTest(*facts, largest, len(places), p, "")
    df, statistic = len(squares) + int(np.count_nonzero(values == 0)), float(squares.sum())
    return FunctionTest(*facts, statistic, df, float(chdtrc(df, statistic)), "")


def known_squares(values: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Squares of independent combinations of estimates, each over its variance.

    Of those whose variance is a guess for at most `FLAT_PART`.
    """
    sizes = np.sqrt(np.diag(covariance[0]))
    if not (np.isfinite(sizes) & (sizes > 0)).all():
        return np.zeros(0)
    whole, guessed = covariance / np.outer(sizes, sizes)
    spreads, vectors = np.linalg.eigh(whole)
    sure = spreads > SMALLEST_SPREAD * spreads.max(initial=0.0)
    roots = vectors[:, sure] / np.sqrt(spreads[sure])
    parts, turn = np.linalg.eigh(roots.T @ guessed @ roots)
    known = (roots @ turn)[:, parts <= FLAT_PART]
    return np.square(known.T @ (values / sizes))


def columns_of(about: ModelDescription, found: Coefficients, columns: Any) -> list[int]:
    """The places of columns that are named, numbered, or of features that are named."""
    single = isinstance(columns, str) or not isinstance(columns, Iterable)
    given = [columns] if single else list(columns)
    groups = _groups(about) if any(isinstance(each, str) for each in given) else {}
    names: dict[str, list[int]] = {}
    if any(isinstance(each, str) and each not in groups for each in given):
        names = {found.name(j): [j] for j in range(found.size)}
    places: list[int] = []
    for each in given:
        if isinstance(each, str) and (each in groups or each in names):
            places += groups.get(each) or names[each]
        elif is_whole(each) and 0 <= each < found.size:
            places.append(int(each))
        else:
            raise InvalidArgument(
                f"columns has {each!r}, which is neither a column of the model, nor a feature, nor "
                f"an index below {number_of(found.size, 'column')}. Use one of "
                f"{shown([*groups] or [*names] or [found.name(0)])}."
            )
    if not places:
        raise InvalidArgument("columns is empty. Name at least one.")
    return list(dict.fromkeys(places))


def _groups(about: ModelDescription) -> dict[str, list[int]]:
    """The encoded columns of each feature of a schema or a task, by its name."""
    sizes: list[tuple[str, int]] = []
    if about.task is not None:
        sizes = [(feature.name, feature.columns) for feature in about.task.encoding.features]
    elif about.schema is not None and isinstance(about.schema.features, NamedFeatures):
        sizes = [(feature.name, feature.n_columns) for feature in about.schema.features]
    ends = np.cumsum([0, *(size for _, size in sizes)])
    return {name: list(range(ends[k], ends[k + 1])) for k, (name, _) in enumerate(sizes)}
