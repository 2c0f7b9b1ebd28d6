"""What is public about a model: its Statement, its plan, its task, and the versions."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

from riata.errors import InvalidArgument, RiataError
from riata.estimators.base import PrivateLinearModel
from riata.estimators.local_base import LocalEstimator
from riata.estimators.pipelines import inner_model
from riata.fitting import plan
from riata.local.learners.model import LocalModel
from riata.local.task import Task
from riata.privacy.budget import REPLACE_PERSON
from riata.privacy.statement import Statement
from riata.report.text import Table
from riata.wording import number_of

MOST_QUESTIONS = 100

#: What the questions of a task ask for.
_ASKED = {
    "mean": "the mean",
    "gram": "products of two columns",
    "cross": "products with the target",
    "joint": "products of two columns, and with the target",
}

Pairs = list[tuple[str, str]]


def statement_of(model: Any) -> Statement:
    """The Statement of anything that a page can be made about."""
    if isinstance(model, LocalModel):
        return model.privacy
    model = inner_model(model)
    if not isinstance(model, PrivateLinearModel | LocalEstimator):
        raise InvalidArgument(
            f"Cannot report on a {type(model).__name__}: a report is about a fitted estimator of "
            "riata, or a model that was learned from reports. Pass the riata model inside it."
        )
    if not hasattr(model, "privacy_"):
        raise InvalidArgument("The model is not fitted, so there is nothing to report. Fit it.")
    statement: Statement = model.privacy_
    return statement


def statement_rows(statement: Statement) -> Pairs:
    """The lines of a Statement that are no lists."""
    return [
        ("Guarantee", statement.sentence),
        ("Epsilon", f"{statement.epsilon:.9g}"),
        ("Delta", f"{statement.delta:g}"),
        ("Neighbours", statement.adjacency),
        ("Accounting", statement.accountant),
        ("Solver", f"{statement.solver}, {number_of(statement.steps, 'step')}"),
    ]


def plan_rows(model: Any, statement: Statement) -> Pairs:
    """The plan that the fit carried out; empty if it cannot be made again from the parameters."""
    if not isinstance(model, PrivateLinearModel) or statement.adjacency == REPLACE_PERSON:
        return []
    shape = (int(statement.public["rows"]), model.n_features_in_)
    try:
        request = model.request_for_shape(*shape, classes=getattr(model, "classes_", None))
        found = plan(request).plan
    except RiataError:  # a parameter was changed after the fit
        return []
    same = found.releases == statement.releases and found.spent.epsilon == statement.epsilon
    return found.rows() if same else []


def task_rows(task: Task) -> Pairs:
    """A task's public facts."""
    rows = [("Kind", task.kind), ("Id", task.id)]
    rows.append(("Epsilon of one report", f"{task.epsilon:g}"))
    rows.append(("Reports of one person", f"at most {task.cap}"))
    if task.deadline:
        rows.append(("Last day", task.deadline))
    rows += [
        (f"Asked for {_ASKED[one.name]}", f"{one.share:.0%} of the devices")
        for one in task.questions
    ]
    return rows


def questions(task: Task) -> Table:
    """What people are asked, with the public bounds of their answers."""
    asked = [*task.encoding.features, *([task.target] if task.target is not None else [])]
    rows = []
    for feature in asked[:MOST_QUESTIONS]:
        low, high = feature.bounds
        within = ", ".join(feature.choices) or f"{low:g} to {high:g}"
        if feature.kind == "yes-no":
            within = "yes or no"
        if feature.size > 1:
            within = f"{feature.size:,} numbers, {within}"
        name = f"{feature.name} (predicted)" if feature is task.target else feature.name
        rows.append((name, feature.question, within))
    whole = len(rows) == len(asked)
    caption = "Questions" if whole else f"The first {len(rows)} of {len(asked):,} questions"
    return Table(caption, ("name", "question", "answers"), rows)


def versions() -> Pairs:
    """What the page was made with."""
    from riata import __version__

    packages = ("numpy", "scipy", "scikit-learn")
    return [
        ("riata", __version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in packages),
    ]
