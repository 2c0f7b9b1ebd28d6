"""The identity of a run: everything public that decides what it releases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from riata.errors import InvalidArgument
from riata.fitting.machine import machine
from riata.grid import ARITHMETIC
from riata.identity import canonical, digest, unnamed
from riata.privacy.events import to_json
from riata.problem import Problem
from riata.solvers import Plan, Solver

#: Arguments of estimators that change nothing that is released.
WITHOUT_EFFECT = frozenset({"engine", "ledger", "verbose"})


def facts_of_search(
    search: Any, event: str, shape: tuple[int, int], classes: Any, schema: Any, seed: int | None
) -> dict[str, Any]:
    """The same for a search over many candidates: its arguments and those of its estimator."""
    from riata import __version__

    arguments = search.get_params(deep=True) | {"random_state": seed}
    parameters = {k: v for k, v in arguments.items() if k.split("__")[-1] not in WITHOUT_EFFECT}
    parameters["estimator"] = type(parameters["estimator"])
    return {
        "riata": __version__,
        "arithmetic": ARITHMETIC,
        "search": canonical(type(search)),
        **{f"parameter {name}": canonical(value) for name, value in parameters.items()},
        "schema": canonical(schema),
        "classes": canonical(classes),
        "n_rows": shape[0],
        "n_features": shape[1],
        "event": event,
    }


@dataclass(frozen=True, eq=False)
class Request:
    """One call of `fit`, without its rows. What is not in it cannot change a release.

    It says nothing about where the rows are and in what form, because no release depends on that.

    Parameters
    ----------
    estimator : object
        With all its constructor arguments.
    solver : Solver
    plan : Plan
    problems : list of Problem
    schema : Schema, optional
    classes : ndarray, optional
    seed : int, optional
        For tests: the noise is known.
    """

    estimator: Any
    solver: Solver
    plan: Plan
    problems: list[Problem]
    schema: Any = None
    classes: Any = None
    seed: int | None = None

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The canonical form, by names that a person knows."""
        from riata import __version__

        parameters, plan = self._parameters, self.plan
        return {
            "riata": __version__,
            "arithmetic": ARITHMETIC,
            "machine": machine(),
            "estimator": canonical(type(self.estimator)),
            **{f"parameter {name}": canonical(value) for name, value in parameters.items()},
            "schema": canonical(self.schema),
            "classes": canonical(self.classes),
            "n_rows": plan.problem.n_rows,
            "n_features": plan.problem.n_features,
            "problems": canonical(self.problems),
            "budget": canonical(plan.budget),
            "solver": canonical(self.solver),
            "projection": canonical(plan.projection),
            "bounds of releases": canonical(plan.preparation.bounds),
            "event": to_json(plan.event),
            "steps": plan.steps,
            "parts": plan.parts,
        }

    @property
    def _parameters(self) -> dict[str, Any]:
        arguments = self.estimator.get_params(deep=False)
        parameters = {k: v for k, v in arguments.items() if k not in WITHOUT_EFFECT}
        if "random_state" in parameters:
            parameters["random_state"] = self.seed
        return parameters

    def check_named(self) -> None:
        """Raise if two requests with the same digest could ask for different things.

        Code of other people, such as a loss of one's own, has no name that says all about it.
        """
        parts = (type(self.estimator), self._parameters, self.solver, self.problems, self.schema)
        found = unnamed([*parts, self.classes, self.plan.projection])
        if found:
            raise InvalidArgument(
                f"A checkpoint cannot be used with {', '.join(found)}: it belongs to one run, and "
                "nothing tells this run from others that are defined otherwise under the same "
                "name. Fit without a checkpoint, or use what riata has, plain values and NumPy "
                "arrays."
            )

    @cached_property
    def digest(self) -> str:
        """The name of the request, in the ledger, checkpoints, Statements and model files."""
        return digest(self.facts)

    @cached_property
    def fact_digests(self) -> dict[str, str]:
        """A short digest of each fact."""
        return {name: digest(fact)[:16] for name, fact in self.facts.items()}
