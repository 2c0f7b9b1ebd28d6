"""What is tried: estimators that differ in parameters that do not touch privacy."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from riata.arguments import is_auto
from riata.errors import InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.wording import did_you_mean

#: Parameters that belong to the search, or to all candidates alike, and why.
_REFUSED = {
    "epsilon": "the search has one budget, and each run gets the same part of it",
    "delta": "the search has one budget, and each run gets the same part of it",
    "ledger": "the search is charged once, as a whole",
    "random_state": "a seed makes the noise known: it belongs to the search",
    "verbose": "a progress bar would show how many candidates were tried, which is secret",
    "adjacency": "all candidates must protect the same neighbours",
    "bounds": "they are a promise about the rows, and all candidates are compared on the same rows",
    "classes": "they are a fact about the labels, and all candidates are compared on the same ones",
    "data_quality": "a search would count the rows anew in each of its fits",
    "max_weight": "the rows of a search have no weights",
    "max_exposure": "the rows of a search have no exposures",
}

#: What an estimator must leave to the search.
_LEFT_TO_THE_SEARCH = ("epsilon", "delta", "ledger", "random_state")

#: How many runs "auto" expects for each candidate: each is then tried with probability 2/3.
RUNS_A_CANDIDATE = 2

_MOST_EXPECTED = 1e4


def check_estimator(estimator: object) -> PrivateLinearModel:
    """An estimator that can be tried, with nothing said that the search has to say."""
    if not isinstance(estimator, PrivateLinearModel):
        raise InvalidArgument(
            f"estimator must be a private estimator of the central model, got "
            f"{type(estimator).__name__}: the search charges what its plan costs. "
            "Pass one such as PrivateLasso(None, bounds=...)."
        )
    for name in _LEFT_TO_THE_SEARCH:
        if getattr(estimator, name) is not None:
            raise InvalidArgument(
                f"The estimator has {name}={getattr(estimator, name)!r}, and the search has its "
                f"own: two would contradict each other. Leave it to the search: pass {name}=None "
                "to the estimator."
            )
    if estimator.data_quality:
        raise InvalidArgument(
            "The estimator has data_quality=True, and a search would count the rows anew in each "
            "of its fits. Pass data_quality=False to the estimator."
        )
    for name in ("max_weight", "max_exposure"):
        if getattr(estimator, name, None) is not None:
            raise InvalidArgument(
                f"The estimator has {name}={getattr(estimator, name)!r}, and {_REFUSED[name]}: the "
                f"noise would be scaled to it for nothing. Pass {name}=None to the estimator, and "
                "fit it with weights once its parameters are chosen."
            )
    return estimator


def grid_points(estimator: PrivateLinearModel, grid: Any) -> list[dict[str, Any]]:
    """The parameters of each candidate. Public, like everything that is decided before the data."""
    try:
        candidates = [dict(each) for each in ParameterGrid(grid)]
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"grid is not a parameter grid: {error} "
            'Write grid={"radius": [0.5, 1.0, 2.0]}, or a list of such grids.'
        ) from None
    known = estimator.get_params(deep=False)
    for name in sorted({name for each in candidates for name in each}):
        if name in _REFUSED:
            raise InvalidArgument(
                f"The grid has {name!r}, which cannot be searched: {_REFUSED[name]}. "
                f"Take {name!r} out of the grid."
            )
        if name not in known:
            raise InvalidArgument(
                f"The grid has {name!r}, which is no parameter of {type(estimator).__name__}."
                f"{did_you_mean(name, known)} Use some of {sorted(set(known) - set(_REFUSED))}."
            )
    return candidates


def check_expected(expected: object, candidates: int) -> float:
    """How many runs are expected."""
    if is_auto(expected):
        return float(RUNS_A_CANDIDATE * candidates)
    number = isinstance(expected, numbers.Real) and not isinstance(expected, bool)
    if not (number and 1 <= float(expected) <= _MOST_EXPECTED):  # type: ignore[arg-type]
        raise InvalidArgument(
            f'expected={expected!r} must be "auto" or a number from 1 to {_MOST_EXPECTED:g}: so '
            "many candidates are tried on average."
        )
    return float(expected)  # type: ignore[arg-type]


def check_fits(candidates: Iterable[PrivateLinearModel], shape: tuple[int, int]) -> None:
    """Raise for whatever a fit of one of them would refuse. The rows are made up for it."""
    x = sparse.csr_array(shape)
    for each in candidates:
        some = getattr(each, "classes", None)  # named by now, also where the rows name them
        label = np.zeros(1) if some is None else np.asarray(some)[:1]
        clone(each).request(x, np.repeat(label, shape[0]))


def candidate(
    estimator: PrivateLinearModel, parameters: dict[str, Any], epsilon: float, delta: float
) -> PrivateLinearModel:
    """One to be tried, with its part of the budget."""
    return clone(estimator).set_params(
        **parameters, epsilon=epsilon, delta=delta, ledger=None, random_state=None, verbose=False
    )
