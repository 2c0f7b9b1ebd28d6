"""The run of a planned fit: charge, read, release, state the guarantee."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from riata.checkpoint import Checkpoint
from riata.curator import Curator
from riata.engines.choice import RowSource, check_engine, open_engine
from riata.errors import InvalidArgument
from riata.fitting.arguments import check_blank_rows, check_ledger
from riata.fitting.data_quality import DataQuality, quality_views, release_data_quality
from riata.fitting.extra_releases import calibrated, with_class_weights
from riata.fitting.planning import PlannedFit
from riata.fitting.progress import progress_bar
from riata.fitting.statement import statement
from riata.mechanisms.noise import Noise
from riata.privacy.budget import REPLACE_PERSON
from riata.privacy.statement import Statement
from riata.solvers import Callback, Plan, Solution

if TYPE_CHECKING:  # SQLAlchemy is slow to import, and most fits have no ledger
    from riata.privacy.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a run released.

    Attributes
    ----------
    planned : PlannedFit
    solutions : tuple of Solution
        One for each loss of the request, or for each class.
    statement : Statement
        The guarantee of all of it.
    data_quality : DataQuality or None
        What is wrong with the rows, if the request asks for it.
    """

    planned: PlannedFit
    solutions: tuple[Solution, ...]
    statement: Statement
    data_quality: DataQuality | None = None


def run(
    planned: PlannedFit,
    rows: RowSource,
    *,
    engine: str = "auto",
    ledger: Ledger | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> Fitted:
    """Charge the plan, read the rows, and fit.

    Parameters
    ----------
    planned : PlannedFit
    rows : RowSource
        Where the rows are; `riata.engines.choice.Arrays` for those in memory. They must have the
        shape and the schema of the request, and people the rows that its budget is for. That is
        public and checked; nothing of the rows is read before the charge.
    engine : str, default="auto"
    ledger : Ledger, optional
        What is charged, before a row is read.
    checkpoint : path, optional
        A file that keeps what was released so far. The same call with the same file goes on where
        a run was stopped, for what was charged when it began.
    verbose : bool, default=False
        Whether to draw a progress bar.
    """
    request, plan = planned.request, planned.plan
    check_rows(rows, planned)
    check_engine(engine)
    check_ledger(ledger, request.seed)
    if checkpoint is not None:
        planned.check_named()
    identity = planned.identity(of_machine=checkpoint is not None)
    name = "fit" if request.estimator is None else request.estimator.__name__
    summary = {"estimator": name, **plan.summary(), "request": identity.digest}
    noise = Noise(request.seed)
    with contextlib.ExitStack() as stack:
        releases = None
        if checkpoint is not None:
            releases = Checkpoint(checkpoint, identity.digest, identity.fact_digests, request.seed)
            stack.callback(releases.close)
            key = releases.key_for("rows")
            rows = rows.keyed(key) if key else rows
        curator = Curator.open(
            plan.event,
            cost=plan.cost,
            read=lambda: open_engine(engine, plan.preparation, rows),
            views=quality_views(plan, request.schema, rows, engine),
            noise=noise,
            adjacency=plan.budget.adjacency,
            parts=plan.parts,
            adaptive=plan.adaptive,
            ledger=ledger,
            unit=planned.unit,
            summary=summary,
            checkpoint=releases,
        )
        quality = release_data_quality(plan, request.schema, curator)
        bar = progress_bar(name, plan.steps * plan.fits, verbose)
        solutions = solve(planned, curator, stack.enter_context(bar))
        curator.close()
    guarantee = statement(planned, solutions, noise.seeded, identity.digest)
    return Fitted(planned, solutions, guarantee, quality)


def check_rows(rows: RowSource, planned: PlannedFit) -> None:
    """Raise unless the rows are those that the plan is for, as far as that is public."""
    if rows.shape is not None:
        check_shape(rows.shape, planned.plan)
    budget, schema = planned.plan.budget, planned.request.schema
    if schema is not None and rows.schema not in (None, schema):
        raise InvalidArgument(
            "The rows are read by another schema than that of the request: names, people and "
            "encodings would not be those that the fit says. Read them by the request's schema."
        )
    check_blank_rows(budget.adjacency, rows.schema)
    people = budget.rows_of_a_person if budget.adjacency == REPLACE_PERSON else None
    if rows.rows_of_a_person not in (None, people):
        raise InvalidArgument(
            f"Each person of the source has {rows.rows_of_a_person} rows, and the budget of the "
            f"plan is for {'single rows' if people is None else f'{people} rows'}: a person could "
            "change more than the noise hides. Plan with the budget of the source's people."
        )


def check_shape(shape: tuple[int, int], plan: Plan) -> None:
    """Rows must have the planned shape; projected ones may come with the dimension of that."""
    problem = plan.problem
    columns = [each.n_features for each in (problem, plan.compressed) if each is not None]
    if shape[0] != problem.n_rows or shape[1] not in columns:
        raise InvalidArgument(
            f"The rows have the shape {shape} and the plan is for {problem.n_rows} rows and "
            f"{columns[-1]} columns: noise and means follow from it. Plan for the shape of the "
            "rows."
        )


def solve(
    planned: PlannedFit, curator: Curator, callback: Callback | None = None
) -> tuple[Solution, ...]:
    """Every release of a fit, in order: extra releases, and one run for each problem or for all."""
    solver, plan = planned.solver, planned.plan
    problems, weights = with_class_weights(plan, planned.problems, curator)
    solutions = solver.run_all(plan, problems, curator, callback)
    if solver.joint:  # its models are calibrated together
        return tuple(replace(each, weights=weights) for each in solutions)
    return tuple(
        replace(each, line=calibrated(plan, problem, curator, each), weights=weights)
        for problem, each in zip(problems, solutions, strict=True)
    )
