"""`riata summary`: what a model learned, in the terminal."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from riata.cli.console import AsJson, answer, answer_json, terminal_width
from riata.cli.options import MaxBytes, ModelFile
from riata.files.limit import MAX_BYTES

#: The terms of each class that a fit shows at its end; the report and `riata summary` have more.
SHOWN = 10


def summary(
    model: ModelFile,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    correction: Annotated[
        str, typer.Option(help="Of p-values for their number: by, bh, bonferroni, or none.")
    ] = "by",
    max_bytes: MaxBytes = MAX_BYTES,
    as_json: AsJson = False,
) -> None:
    """Print what a model learned: estimates, errors, intervals. Reads no row, costs nothing."""
    from riata.model_file import load  # with scikit-learn, which is slow to import

    found = load(model, max_bytes=max_bytes)
    how = None if correction == "none" else correction
    if as_json:
        answer_json(summary_facts(found, level, how))
        return
    show_summary(found, level, how)


def summary_facts(model: Any, level: float = 0.95, correction: str | None = "by") -> dict[str, Any]:
    """For programs."""
    from riata.estimators.summary import summarize

    found = summarize(model, level, correction=correction)
    return {
        "model": found.model, "glance": found.glance, "level": level,
        "correction": correction, "terms": found.records(),
        "notes": list(found.notes), "advice": list(found.advice),
    }  # fmt: skip


def show_summary(
    model: Any, level: float = 0.95, correction: str | None = "by", most: int | None = None
) -> None:
    """For people."""
    from riata.estimators.summary import summarize
    from riata.estimators.summary_text import summary_text

    found = summarize(model, level, correction=correction, most=most)
    answer(summary_text(found, terminal_width()))
