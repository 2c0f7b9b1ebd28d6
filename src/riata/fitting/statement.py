"""The guarantee of a fit, in the words of its plan."""

from __future__ import annotations

import math
from typing import Any

from riata.fitting.planning import PlannedFit
from riata.privacy.budget import REPLACE_LABEL, WEAK_EPSILON
from riata.privacy.statement import Statement
from riata.solvers import Plan, Solution

DELTA_NOTE = "delta is not below 1 / rows: publishing one random row would satisfy it too."
WEAK_NOTE = "epsilon is large: the guarantee holds, and it protects little."
PEOPLE_NOTE = (
    "Each person counts as the same number of rows: of more, some were drawn at random, and fewer "
    "were repeated in turn."
)
LABEL_NOTE = (
    "Only targets are protected. The rows' other columns, and who is in the data, were declared "
    "public and are NOT protected: a model, or any release, may reveal them."
)
CLIPPING_NOTE = "Missing values count as 0, and rows outside the bounds are clipped into them."


def is_large(delta: float, plan: Plan) -> bool:
    """Whether publishing one random row, or person, would satisfy delta too."""
    return delta * plan.problem.n_rows / plan.budget.rows_of_a_person >= 1


def default_delta_note(delta: float) -> str:
    """For a fit whose delta nobody gave."""
    return f"delta was not given and follows from the number of rows: {delta:g}."


def statement(
    planned: PlannedFit, solutions: tuple[Solution, ...], seeded: bool, digest: str
) -> Statement:
    """What a run promises."""
    request, plan = planned.request, planned.plan
    problem, total = plan.problem, plan.spent
    notes, more = [CLIPPING_NOTE], dict[str, Any]()
    if plan.budget.adjacency == REPLACE_LABEL:
        notes.append(LABEL_NOTE)
    if is_large(total.delta, plan):
        notes.append(DELTA_NOTE)
    if WEAK_EPSILON < total.epsilon < math.inf:
        notes.append(WEAK_NOTE)
    if plan.because:
        notes.append(f"The solver was chosen from public facts: {plan.because}.")
    if request.of_people:
        each = plan.budget.rows_of_a_person
        more |= {"people": problem.n_rows // each, "rows of a person": each}
        notes.append(PEOPLE_NOTE)
    if request.classes is not None:
        more["classes"] = ", ".join(map(str, request.classes.tolist()))
    return Statement(
        epsilon=total.epsilon,
        delta=total.delta,
        adjacency=plan.budget.adjacency,
        solver=plan.solver,
        steps=max(each.steps for each in solutions),
        accountant=total.accountant,
        releases=plan.releases,
        public={
            "rows": problem.n_rows,
            "columns": problem.n_features,
            "bounds": repr(problem.bounds),
            "loss": problem.loss.name,
            "set": str(problem.set),
            "intercept": problem.fit_intercept,
            **_unpenalized(planned),
            **more,
        },
        seeded=seeded,
        notes=(*notes, *request.notes),
        request=digest,
    )


def _unpenalized(planned: PlannedFit) -> dict[str, str]:
    """The columns that are always in the model, by their names if a schema has some."""
    places, schema = planned.request.unpenalized, planned.request.schema
    if not places:
        return {}
    names = None if schema is None or schema.unnamed else schema.feature_names
    listed = [str(j) if names is None else names[j] for j in places]
    return {"unpenalized columns": ", ".join(listed)}
