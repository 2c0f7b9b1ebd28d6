"""`riata summary`: what a model learned, in the terminal."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from riata.cli.console import AsJson, answer, answer_json
from riata.cli.options import MaxBytes, ModelFile
from riata.files.limit import MAX_BYTES

#: The terms of each class that a fit shows at its end; the report and `riata summary` have more.
SHOWN = 10


def summary(
    model: ModelFile,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    max_bytes: MaxBytes = MAX_BYTES,
    as_json: AsJson = False,
) -> None:
    """Print what a model learned: estimates, errors, intervals. Reads no row, costs nothing."""
    from riata.model_file import load  # with scikit-learn, which is slow to import

    found = load(model, max_bytes=max_bytes)
    if as_json:
        answer_json(summary_facts(found, level))
        return
    show_summary(found, level)


def summary_facts(model: Any, level: float = 0.95) -> dict[str, Any]:
    """For programs."""
    from riata.estimators.summary import summarize

    found = summarize(model, level)
    return {
        "model": found.model, "glance": found.glance, "level": level, "terms": found.records(),
        "notes": list(found.notes), "advice": list(found.advice),
    }  # fmt: skip


def show_summary(model: Any, level: float = 0.95, most: int | None = None) -> None:
    """For people."""
    from riata.estimators.summary import summarize

    answer(str(summarize(model, level, most=most)))
