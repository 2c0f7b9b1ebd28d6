"""Forecasts for commands: the guess of a study, and what a forecast says to a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from riata.cli.console import shows_progress
from riata.cli.study import Study
from riata.errors import InvalidArgument

if TYPE_CHECKING:
    from riata.forecasting import Forecast


def guess_of(study: Study) -> dict[str, Any]:
    """The guess of a study. Persons with several rows cannot be forecast."""
    schema = study.schema
    if schema is not None and schema.rows_of_a_person > 1:
        raise InvalidArgument(
            f"A person counts as {schema.rows_of_a_person} rows in this schema, and a forecast "
            "makes up rows that belong to nobody. Forecast with rows_of_a_person = 1."
        )
    return dict(study.guess or {})


def forecast_of(study: Study, n_rows: int, n_features: int) -> Forecast:
    """What to expect of the fit of a study, from its guess alone."""
    from riata.forecasting import forecast

    guess, model = guess_of(study), study.model(for_source=False)
    return forecast(model, n_rows, n_features, verbose=shows_progress(), **guess)


def forecast_facts(found: Forecast) -> dict[str, Any]:
    """A forecast for a program."""
    names = (
        "metric", "score", "interval", "best_score", "zero_score", "accuracy", "accuracy_interval",
        "excess_risk", "excess_interval", "excess_part", "bound", "sentence",
    )  # fmt: skip
    return {name: getattr(found, name) for name in names} | {
        "learns_nothing": found.nothing,
        "fits": len(found.scores),
        "guess": dict(found.guess.stated),
        "assumed": dict(found.guess.rows(found.plan.problem)),
    }
