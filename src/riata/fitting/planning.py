"""The plan of a request: steps, noise and cost, fixed before a row is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from riata.errors import Incompatible, InvalidArgument
from riata.fitting.extra_planning import plan_with_extra_releases
from riata.fitting.machine import machine
from riata.fitting.request import Request, common_facts
from riata.identity import canonical, digest, unnamed
from riata.losses import Weighted
from riata.privacy.events import to_json
from riata.privacy.unit import PrivacyUnit
from riata.problem import Problem
from riata.solvers import Plan, Solver, choose_solver, joint_rule_for, rule_for


@dataclass(frozen=True)
class Identity:
    """The name of a run, and a short digest of each fact that it is made of."""

    digest: str
    fact_digests: dict[str, str]


@dataclass(frozen=True, eq=False)
class PlannedFit:
    """A request with all that follows from it. Nothing was charged, and no row was read.

    Attributes
    ----------
    request : Request
    solver : Solver
    problems : tuple of Problem
        What each fit minimises.
    plan : Plan
        Its event covers all fits and all extra releases.
    """

    request: Request
    solver: Solver
    problems: tuple[Problem, ...]
    plan: Plan

    def __post_init__(self) -> None:
        """Rows are clipped into the bounds of the plan, and queries trust those of the problems."""
        if not all(_alike(each, self.plan.problem) for each in self.problems):
            raise InvalidArgument(
                "The problems of a fit and its plan differ in bounds, adjacency or size: the noise "
                "would not be scaled to the rows. Make it with riata.fitting.plan."
            )

    @property
    def unit(self) -> PrivacyUnit:
        """What the fit protects: the schema of its rows names the column of people."""
        schema = self.request.schema
        return PrivacyUnit.of(self.plan.budget, "" if schema is None else schema.person)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The canonical form of everything that decides what the fit releases."""
        request, plan = self.request, self.plan
        shape = (request.n_rows, request.n_features)
        return {
            **common_facts(
                request.estimator, request.parameters, request.seed, request.schema,
                request.classes, shape,
            ),
            "problems": canonical(self.problems),
            "budget": canonical(plan.budget),
            "solver": canonical(self.solver),
            "extra releases": canonical(request.extra_releases),
            "projection": canonical(plan.projection),
            "bounds of releases": canonical(plan.preparation.bounds),
            "event": to_json(plan.event),
            "steps": plan.steps,
            "parts": plan.parts,
        }  # fmt: skip

    def identity(self, *, of_machine: bool = False) -> Identity:
        """The name of the fit in ledgers, checkpoints, Statements and model files.

        `of_machine` adds what decides the last digits of a solver's arithmetic: a run that may go
        on from a checkpoint goes on only where that is the same.
        """
        facts = self.facts | ({"machine": machine()} if of_machine else {})
        each = {name: digest(fact)[:16] for name, fact in facts.items()}
        return Identity(digest(facts), each)

    def check_named(self) -> None:
        """Raise if two fits with the same name could ask for different things.

        Code of other people, such as a loss of one's own, has no name that says all about it.
        """
        request = self.request
        parts = (request.estimator, dict(request.parameters), self.solver, self.problems)
        found = unnamed([*parts, request.schema, request.classes, self.plan.projection])
        if found:
            raise InvalidArgument(
                f"A checkpoint cannot be used with {', '.join(found)}: it belongs to one run, and "
                "nothing tells this run from others that are defined otherwise under the same "
                "name. Fit without a checkpoint, or use what riata has, plain values and NumPy "
                "arrays."
            )


def _alike(one: Problem, other: Problem) -> bool:
    """Whether rows for one problem are what the sensitivities of the other's queries rest on."""
    first, second = ((p.adjacency, p.n_rows, p.n_features) for p in (one, other))
    same_bounds = one.bounds is other.bounds or canonical(one.bounds) == canonical(other.bounds)
    return first == second and same_bounds


def plan(request: Request) -> PlannedFit:
    """Choose the solver, and fix steps and noise so that all releases spend the budget together.

    Reads nothing and charges nothing. What cannot be fitted is refused here.
    """
    budget = request.budget
    solver, problems, because = _chosen(request)
    fits = len(problems)
    times = request.extra_releases.times(solver, budget, fits)
    planned = plan_with_extra_releases(solver, problems[0], budget, fits, times)
    if planned.parts > 1 and request.of_people:
        raise Incompatible(
            f'solver="{planned.solver}" on disjoint parts of the rows', "rows of people",
            because="the rows of one person may be in several parts",
            instead="Use split=False",
        )  # fmt: skip
    return PlannedFit(request, solver, problems, replace(planned, because=because))


def _chosen(request: Request) -> tuple[Solver, tuple[Problem, ...], str]:
    """The solver, what it minimises, and why "auto" took it. All classes together if it can."""
    budget, automatic = request.budget, request.solver == "auto"
    first, joint = request.problems(None)[0], request.joint_problem(None)
    rule = joint_rule_for(joint, budget) if joint is not None and automatic else None
    if rule is not None:
        solver: Solver = rule.solver(steps=request.steps)
    else:
        solver = choose_solver(request.solver, _weighted(request, first), budget, request.steps)
    together = request.joint_problem(solver) if solver.joint else None
    if together is not None:
        return solver, (together,), "" if rule is None else rule.because
    problems = request.problems(solver)
    rule = rule_for(_weighted(request, problems[0]), budget) if automatic else None
    return solver, problems, "" if rule is None else rule.because


def _weighted(request: Request, problem: Problem) -> Problem:
    """The problem with weights that will be released, for the choice of a solver."""
    if not request.extra_releases.balanced or isinstance(problem.loss, Weighted):
        return problem
    return replace(problem, loss=Weighted(problem.loss, (1.0,)))
