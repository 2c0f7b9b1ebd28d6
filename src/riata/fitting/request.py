"""What a fit asks for: everything public that decides what it releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.data.schema import Schema
from riata.fitting.arguments import check_blank_rows
from riata.fitting.extra_releases import ExtraReleases
from riata.grid import ARITHMETIC
from riata.identity import canonical, digest
from riata.losses import Loss
from riata.privacy.budget import REPLACE_ONE, REPLACE_PERSON, Budget
from riata.privacy.events import Event, to_json
from riata.problem import Problem
from riata.sets import ConstraintSet
from riata.solvers import Solver

#: Arguments of estimators that change nothing that is released.
WITHOUT_EFFECT = frozenset({"engine", "ledger", "verbose"})


@dataclass(frozen=True)
class AutomaticRadius:
    """A ball whose radius depends on the solver's radius policy.

    Attributes
    ----------
    ball : type of ConstraintSet
        Made from a radius.
    radii : mapping of str to float
        The radius for each `Solver.radius_policy`.
    """

    ball: type[Any]
    radii: Mapping[str, float]

    def for_solver(self, solver: Solver | None) -> ConstraintSet:
        """The ball; while no solver is chosen yet, the smallest one."""
        found: ConstraintSet = self.ball(
            self.radii["narrow" if solver is None else solver.radius_policy]
        )
        return found


@dataclass(frozen=True, eq=False)
class Request:
    """One fit, without its rows. What is not in it cannot change a release.

    It says nothing about where the rows are, in what form, which engine sums them and who is
    charged, because no release depends on that.

    Parameters
    ----------
    losses : tuple of Loss
        One for each model that is fitted to the rows: several for more than two classes.
    set : ConstraintSet or AutomaticRadius
    bounds : Bounds
        Of the rows, and of the targets as the losses read them.
    budget : Budget
        Of all models and all extra releases together.
    n_rows, n_features : int
    solver : str or Solver, default="auto"
    steps : int or "auto", default="auto"
    fit_intercept : bool, default=True
    extra_releases : ExtraReleases, optional
        What is released beside the fits: class counts, calibration.
    classes : ndarray, optional
        The public labels whose codes the targets are.
    schema : Schema, optional
        Of the columns that the rows were encoded from.
    seed : int, optional
        For tests: the noise is known.
    estimator : type, optional
        Whose fit this is.
    parameters : mapping of str to object
        The arguments of its constructor, without those in `WITHOUT_EFFECT` and `random_state`.
    notes : tuple of str
        What the Statement says besides.
    joint_loss : Loss, optional
        The loss of all classes together, for solvers that fit them so, in place of `losses`.
    unpenalized : tuple of int
        Columns that are always in the model.
    """

    losses: tuple[Loss, ...]
    set: ConstraintSet | AutomaticRadius
    bounds: Bounds
    budget: Budget
    n_rows: int
    n_features: int
    solver: str | Solver = "auto"
    steps: int | str = "auto"
    fit_intercept: bool = True
    extra_releases: ExtraReleases = field(default_factory=ExtraReleases)
    classes: np.ndarray | None = None
    schema: Schema | None = None
    seed: int | None = None
    estimator: type | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    joint_loss: Loss | None = None
    unpenalized: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_blank_rows(self.budget.adjacency, self.schema)

    @property
    def of_people(self) -> bool:
        """Whether a person is protected, with all of their rows."""
        return self.budget.adjacency == REPLACE_PERSON

    def problems(self, solver: Solver | None) -> tuple[Problem, ...]:
        """What each fit minimises. The solver may have a say in an automatic radius."""
        return self._problems(self.losses, solver)

    def joint_problem(self, solver: Solver | None) -> Problem | None:
        """What a fit of all classes together minimises, if there are several."""
        if self.joint_loss is None:
            return None
        return self._problems((self.joint_loss,), solver)[0]

    def _problems(self, losses: tuple[Loss, ...], solver: Solver | None) -> tuple[Problem, ...]:
        given = self.set
        over = given.for_solver(solver) if isinstance(given, AutomaticRadius) else given
        adjacency = REPLACE_ONE if self.of_people else self.budget.adjacency
        facts = (self.bounds, self.n_rows, self.n_features, adjacency, self.fit_intercept)
        return tuple(Problem(loss, over, *facts, self.unpenalized) for loss in losses)


def arguments_of(estimator: Any, *, deep: bool = False) -> dict[str, Any]:
    """The constructor arguments of an estimator that can change a release, but for its seed."""
    without = {*WITHOUT_EFFECT, "random_state"}
    arguments = estimator.get_params(deep=deep)
    return {name: each for name, each in arguments.items() if name.split("__")[-1] not in without}


def common_facts(
    estimator: type | None,
    parameters: Mapping[str, Any],
    seed: int | None,
    schema: Schema | None,
    classes: Any,
    shape: tuple[int, int],
) -> dict[str, Any]:
    """The facts that name any run, in canonical form, by names that a person knows."""
    from riata import __version__

    return {
        "riata": __version__,
        "arithmetic": ARITHMETIC,
        "estimator": canonical(estimator),
        **{f"parameter {name}": canonical(value) for name, value in parameters.items()},
        "parameter random_state": canonical(seed),
        "schema": canonical(schema),
        "classes": canonical(classes),
        "n_rows": shape[0],
        "n_features": shape[1],
    }


def search_digest(search: Any, request: Request, event: Event, seed: int | None) -> str:
    """The name of a search: its arguments, those of its estimator, and what it costs.

    Parameters
    ----------
    search : estimator
        With an argument `estimator`.
    request : Request
        Of a fit of this estimator on the same rows.
    event : Event
    seed : int, optional
    """
    parameters = arguments_of(search, deep=True)
    parameters["estimator"] = type(parameters["estimator"])
    shape = (request.n_rows, request.n_features)
    facts = common_facts(type(search), parameters, seed, request.schema, request.classes, shape)
    return digest(facts | {"event": to_json(event)})
