"""What every estimator does: check arguments, plan, charge, fit, state the guarantee."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from riata.bounds import Bounds
from riata.checkpoint import Checkpoint
from riata.curator import Curator
from riata.engines.choice import RowSource, check_engine, open_engine
from riata.errors import Incompatible, InvalidArgument
from riata.estimators.notebook import NotebookRepr
from riata.estimators.progress import progress_bar
from riata.estimators.sources import bounds_with_schema, encoded, unit_of
from riata.fitting import Request
from riata.losses import Loss
from riata.mechanisms.noise import Noise
from riata.privacy.budget import ADD_REMOVE, REPLACE_PERSON, Budget, default_delta
from riata.privacy.statement import Statement
from riata.problem import Problem
from riata.sets import ConstraintSet
from riata.solvers import (
    Callback,
    Plan,
    Solution,
    Solver,
    choose_solver,
    rule_for,
)
from riata.solvers.extra_releases import plan_with_extra_releases

#: Where a fit writes down what it released, if anywhere.
Checkpointed = str | os.PathLike[str] | None

DELTA_NOTE = "delta is not below 1 / rows: publishing one random row would satisfy it too."
PEOPLE_NOTE = (
    "Each person counts as the same number of rows: of more, some were drawn at random, and fewer "
    "were repeated in turn."
)
CLIPPING_NOTE = "Missing values count as 0, and rows outside the bounds are clipped into them."


@dataclass(frozen=True)
class Job:
    """What one call of `fit` asks for: public facts, and the way to the rows.

    `rows_of_a_person` is None if a row is what is protected.
    """

    losses: list[Loss]
    bounds: Bounds
    shape: tuple[int, int]
    rows: RowSource
    classes: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    rows_of_a_person: int | None = None


def _is_ledger(value: object) -> bool:
    from riata.privacy.ledger import Ledger  # SQLAlchemy is slow to import

    return isinstance(value, Ledger)


def _errors(solution: Solution) -> np.ndarray:
    """The standard error of each coefficient, NaN for those that the solver says nothing about."""
    errors = np.full(solution.theta.size, math.nan)
    if solution.errors is not None:
        errors[solution.theta.support] = solution.errors
    return errors


def _selection_order(solution: Solution) -> np.ndarray:
    """The place of each column in the order of selection, from 1; 0 for the others."""
    order = np.zeros(solution.theta.size, dtype=np.int64)
    order[list(solution.selected)] = np.arange(1, len(solution.selected) + 1)
    return order


def checked_bounds(estimator: Any) -> Bounds:
    """The bounds of an estimator, which has to have some, or of the schema of its rows."""
    schema = getattr(estimator, "schema_", None)
    if estimator.bounds is None and schema is None:
        raise InvalidArgument(
            f"{type(estimator).__name__} needs bounds: taking them from the data would reveal it. "
            "Pass bounds=Bounds(x=..., y=...)."
        )
    if estimator.bounds is not None and not isinstance(estimator.bounds, Bounds):
        raise InvalidArgument(
            f"bounds must be a Bounds, got {type(estimator.bounds).__name__}. "
            "Write bounds=Bounds(x=..., y=...)."
        )
    return estimator.bounds if schema is None else bounds_with_schema(estimator.bounds, schema)


def checked_seed(estimator: Any) -> int | None:
    """The seed that an estimator's random_state stands for."""
    if estimator.random_state is None:
        return None
    if hasattr(estimator.random_state, "randint"):
        return int(estimator.random_state.randint(2**31 - 1))
    if isinstance(estimator.random_state, (int, np.integer)) and not isinstance(
        estimator.random_state, bool
    ):
        return int(estimator.random_state)
    raise InvalidArgument(
        f"random_state must be None or an int, got {type(estimator.random_state).__name__}. "
        "Leave it out for a private fit."
    )


class PrivateLinearModel(NotebookRepr, BaseEstimator):
    """A linear model fitted through a curator. Subclasses say which losses over which set."""

    def _job(self, X: Any, y: Any) -> Job:
        raise AssertionError("a subclass reads its targets")

    def _fit(self, job: Job, checkpoint: Checkpointed = None) -> list[Solution]:
        """Plan, charge, read, run: one fit for each loss, all on the same rows."""
        solver, plan, problems = self._planned(
            job.losses, job.bounds, *job.shape, job.rows_of_a_person
        )
        seed = checked_seed(self)
        request = self._request(job, solver, plan, problems, seed)
        if checkpoint is not None:
            request.check_named()
        summary = {
            "estimator": type(self).__name__, **plan.summary(), "request": request.digest,
        }  # fmt: skip
        noise = Noise(seed)
        kept = (
            None
            if checkpoint is None
            else Checkpoint(checkpoint, request.digest, request.fact_digests, seed)
        )
        rows = job.rows
        with contextlib.ExitStack() as stack:
            if kept is not None:
                stack.callback(kept.close)
                key = kept.key_for("rows")
                rows = rows.keyed(key) if key else rows
            curator = Curator.open(
                plan.event,
                cost=plan.cost,
                read=lambda: open_engine(self.engine, plan.preparation, rows),
                noise=noise,
                adjacency=plan.budget.adjacency,
                parts=plan.parts,
                adaptive=plan.adaptive,
                ledger=self.ledger,
                unit=unit_of(self, plan.budget),
                summary=summary,
                checkpoint=kept,
            )
            steps = plan.steps * plan.fits
            callback = stack.enter_context(progress_bar(type(self).__name__, steps, self.verbose))
            found = self._solved(solver, plan, problems, curator, callback)
            curator.close()
        self.n_iter_ = max(solution.steps for solution in found)
        self.privacy_ = self._statement(job, plan, self.n_iter_, noise.seeded, request.digest)
        return found

    def _request(
        self, job: Job, solver: Solver, plan: Plan, problems: list[Problem], seed: int | None
    ) -> Request:
        """Which run a fit is."""
        return Request(
            self, solver, plan, problems,
            schema=getattr(self, "schema_", None), classes=job.classes, seed=seed,
        )  # fmt: skip

    def _solved(
        self,
        solver: Solver,
        plan: Plan,
        problems: list[Problem],
        curator: Curator,
        callback: Callback | None = None,
    ) -> list[Solution]:
        """Every release of a fit, in order: one run for each problem, and the extra releases."""
        return [solver.run(plan, problem, curator, callback) for problem in problems]

    def _extra_releases(self, solver: Solver, budget: Budget, fits: int) -> dict[str, int]:
        """How often each kind of extra release is made."""
        return {}

    def _keep(self, found: list[Solution], shape: tuple[int, ...]) -> None:
        """Coefficients, and what the solver says about their errors: NaN where it says nothing."""

        def each(value: Callable[[Solution], Any]) -> Any:
            values = np.array([value(solution) for solution in found], dtype=np.float64)
            return values.reshape(shape + values.shape[1:])[()]

        def unknown(value: float | None) -> float:
            return math.nan if value is None else value

        self.coef_ = each(lambda s: s.theta.dense())
        self.intercept_ = each(lambda s: s.theta.offset)
        self.coef_error_ = each(_errors)
        self.selection_order_ = each(_selection_order).astype(np.int64)
        self.intercept_error_ = each(lambda s: unknown(s.offset_error))
        self.training_fit_ = each(lambda s: unknown(s.fit and s.fit.gain))
        self.training_fit_error_ = each(lambda s: unknown(s.fit and s.fit.error))

    def _planned(
        self,
        losses: list[Loss],
        bounds: Bounds,
        n_rows: int,
        n_features: int,
        rows_of_a_person: int | None = None,
    ) -> tuple[Solver, Plan, list[Problem]]:
        """One problem for each loss, and the plan whose event covers them all."""
        self._check_parameters()
        budget = self._budget(n_rows, rows_of_a_person)

        def problem(loss: Loss, solver: Solver | None = None) -> Problem:
            facts = (self.adjacency, bool(self.fit_intercept))
            return Problem(loss, self._set(solver), bounds, n_rows, n_features, *facts)

        solver = self._chosen(problem(losses[0]), budget)
        problems = [problem(loss, solver) for loss in losses]
        extra = self._extra_releases(solver, budget, len(losses))
        plan = plan_with_extra_releases(solver, problems[0], budget, len(losses), extra)
        if plan.parts > 1 and rows_of_a_person is not None:
            raise Incompatible(
                f'solver="{plan.solver}" on disjoint parts of the rows', "rows of people",
                because="the rows of one person may be in several parts",
                instead="Use split=False",
            )  # fmt: skip
        return solver, replace(plan, because=self._because(problems[0], budget)), problems

    def _budget(self, n_rows: int, rows_of_a_person: int | None) -> Budget:
        if rows_of_a_person is None:
            delta = default_delta(n_rows) if self.delta is None else self.delta
            return Budget(self.epsilon, delta, self.adjacency)
        if self.adjacency == ADD_REMOVE:
            raise InvalidArgument(
                'adjacency="add-remove" is about rows, and the rows are of people: a person is '
                "replaced as a whole, with all of their rows. Leave adjacency out."
            )
        people = n_rows // rows_of_a_person
        delta = default_delta(people) if self.delta is None else self.delta
        return Budget(self.epsilon, delta, REPLACE_PERSON, rows_of_a_person)

    def _because(self, problem: Problem, budget: Budget) -> str:
        """Why the solver was chosen, if it was not named."""
        automatic = isinstance(self.solver, str) and self.solver == "auto"
        return rule_for(problem, budget).because if automatic else ""

    def _chosen(self, problem: Problem, budget: Budget) -> Solver:
        return choose_solver(self.solver, problem, budget, self.steps)

    def _n_coefficients(self, n_features: int) -> int:
        """How many coefficients a fit on rows of this many columns has, for each class."""
        return n_features

    def _set(self, solver: Solver | None = None) -> ConstraintSet:
        """The set; the solver may have a say in an automatic radius."""
        raise AssertionError("a subclass names its set")

    def _check_parameters(self) -> None:
        """Everything that can be wrong without any data."""
        Budget(self.epsilon, 0.0 if self.delta is None else self.delta, self.adjacency)
        check_engine(self.engine)
        if self.ledger is not None and not _is_ledger(self.ledger):
            raise InvalidArgument(
                f"ledger must be a Ledger, got {type(self.ledger).__name__}. "
                "Make one with Ledger.create or Ledger.open."
            )
        if self.ledger is not None and self.random_state is not None:
            raise InvalidArgument(
                "random_state makes the noise known, so the fit protects nobody, and a ledger "
                "records only real spending. Leave out random_state, or leave out the ledger."
            )

    def _checked_bounds(self) -> Bounds:
        return checked_bounds(self)

    def _statement(self, job: Job, plan: Plan, steps: int, seeded: bool, request: str) -> Statement:
        problem, total, notes = plan.problem, plan.spent, job.notes
        classes, people = {}, {}
        if job.rows_of_a_person is not None:
            people = {
                "people": problem.n_rows // job.rows_of_a_person,
                "rows of a person": job.rows_of_a_person,
            }
            notes = (PEOPLE_NOTE, *notes)
        if job.classes is not None:
            classes["classes"] = ", ".join(map(str, job.classes.tolist()))
        if self.delta is None:
            notes = (
                f"delta was not given and follows from the number of rows: {total.delta:g}.",
                *notes,
            )
        if plan.because:
            notes = (f"The solver was chosen from public facts: {plan.because}.", *notes)
        if total.delta * problem.n_rows / plan.budget.rows_of_a_person >= 1:
            notes = (DELTA_NOTE, *notes)
        return Statement(
            epsilon=total.epsilon,
            delta=total.delta,
            adjacency=plan.budget.adjacency,
            solver=plan.solver,
            steps=steps,
            accountant=total.accountant,
            releases=plan.releases,
            public={
                "rows": problem.n_rows,
                "columns": problem.n_features,
                "bounds": repr(problem.bounds),
                "loss": problem.loss.name,
                "set": str(problem.set),
                "intercept": problem.fit_intercept,
                **people,
                **classes,
            },
            seeded=seeded,
            notes=(CLIPPING_NOTE, *notes),
            request=request,
        )

    def _rows(self, X: Any) -> Any:
        """Rows to predict, read as rows to fit are: missing is 0, and clipped into the bounds."""
        check_is_fitted(self)
        return self._checked_bounds().clip_x(encoded(self, X))

    def _margins(self, X: Any) -> np.ndarray:
        """x . coef_ + intercept_ for each row, and for each class where there are several."""
        return self._rows(X) @ self.coef_.T + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags
