"""`riata plan`: what to expect of a fit, from public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from riata.cli.console import (
    AsJson,
    answer,
    answer_json,
    answer_table,
    note,
    out,
    reply,
    shows_progress,
    terminal_width,
)
from riata.cli.forecasts import forecast_facts, guess_of
from riata.cli.options import study_command
from riata.cli.study import Study
from riata.errors import InvalidArgument
from riata.wording import shape_of

if TYPE_CHECKING:
    from riata.data import Schema
    from riata.forecasting import Comparison, Required
    from riata.solvers.plan import Plan

EPSILON, ROWS = "epsilon", "rows"


def _flags(options: Mapping[str, Any]) -> dict[str, Any]:
    """A search for epsilon begins somewhere; the only solver to compare is the one of the fit."""
    more: dict[str, Any] = {}
    searches = options["for_r2"] is not None or options["for_auc"] is not None
    nowhere = options["epsilon"] is None and options["study"] is None
    if searches and nowhere and options["solve"] == EPSILON:
        more["budget.epsilon"] = 1.0
    if len(solvers := options["solver"] or []) == 1:
        more["parameters.solver"] = solvers[0]
    return more


@study_command(
    "relevant", "signal", "design", "spread", "positives", "density", "correlation", "nonzeros",
    "schema", "estimator", "epsilon", "delta",
    "adjacency", "radius", "row_length", "steps", "sparsity", "unpenalized", "intercept", "others",
    flags=_flags,
)  # fmt: skip
def plan(
    study: Study,
    rows: Annotated[int | None, typer.Option(help="How many rows there will be.", min=1)] = None,
    columns: Annotated[
        int | None, typer.Option(help="How many encoded columns, without a schema.", min=1)
    ] = None,
    solver: Annotated[list[str] | None, typer.Option(help="Compare only these solvers.")] = None,
    for_r2: Annotated[float | None, typer.Option(help="Search for what this R2 takes.")] = None,
    for_auc: Annotated[float | None, typer.Option(help="Search for what this AUC takes.")] = None,
    solve: Annotated[str, typer.Option(help="What to search for: epsilon or rows.")] = EPSILON,
    sure: Annotated[
        bool, typer.Option(help="Want it in nine of ten fits, and not in half of them.")
    ] = False,
    repeats: Annotated[int, typer.Option(help="Simulated fits of each kind.", min=2)] = 10,
    patience: Annotated[
        float, typer.Option(help="Seconds for each solver; slower ones are left out.")
    ] = 10.0,
    plot: Annotated[Path | None, typer.Option(help="Draw it here: .svg, .png or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare solvers before anything is spent, or ask which epsilon or how many rows it takes."""
    wanted = for_auc if for_r2 is None else for_r2
    if solve not in (EPSILON, ROWS):
        raise InvalidArgument(f"--solve {solve} is not known. Use epsilon or rows.")
    study = _with_knots(study, rows, wanted is None or solve == EPSILON)
    n_columns = _columns(study, columns)
    model, guess = study.model(for_source=False), guess_of(study)
    guess.setdefault("repeats", repeats)
    if plot is not None:
        _check_plot(plot)
    if wanted is None and len(getattr(model, "classes", None) or ()) > 2:
        _show_plan(model.plan(_rows(study, rows), n_columns), study.schema, as_json)
        return
    from riata.forecasting import ForecastCurve, compare_solvers, required_epsilon, required_rows

    guess["verbose"] = shows_progress()
    drawn: Any
    if wanted is None:
        drawn = compare_solvers(
            model, _rows(study, rows), n_columns, solvers=solver, patience=patience, **guess
        )
        schema = study.schema
        if as_json:
            derived = {} if schema is None else dict(schema.derived)
            answer_json(_comparison_facts(drawn) | {"derived": derived})
        else:
            _print_comparison(drawn, [] if schema is None else schema.derived)
    else:
        _check_metric(model, for_r2, for_auc)
        if solve == EPSILON:
            n_rows = _rows(study, rows)
            found = required_epsilon(model, n_rows, n_columns, wanted, sure=sure, **guess)
        else:
            start: dict[str, Any] = {} if rows is None else {"start": rows}
            found = required_rows(model, n_columns, wanted, sure=sure, **start, **guess)
        drawn = ForecastCurve(found.over, *zip(*found.tried, strict=True))
        reply(as_json, _required_facts(found), str(found))
    if plot is not None:
        drawn.plot().figure.savefig(plot)
        note(f"Wrote {plot}.")


def _show_plan(found: Plan, schema: Schema | None, as_json: bool) -> None:
    """The plan of the fit alone, where nothing is forecast: for three classes or more."""
    derived = [] if schema is None else schema.derived
    if as_json:
        answer_json(found.summary() | {"derived": dict(derived)})
        return
    answer(str(found))
    for name, fact in derived:
        note(f"From the schema: {name}: {fact}.")
    note("Forecasts are for two classes: to compare solvers, name two of the classes.")


def _with_knots(study: Study, rows: int | None, known: bool) -> Study:
    """The study with the schema as a fit of so many rows has it, if their number is known."""
    if study.schema is None or not known or not study.model(for_source=True).fits_curves:
        return study
    return replace(study, schema=study.schema.for_fit(_rows(study, rows), study.epsilon))


def _rows(study: Study, rows: int | None) -> int:
    fixed = None if study.schema is None else study.schema.rows or study.schema.people
    found = rows or study.rows or fixed
    if found is None:
        raise InvalidArgument(
            "The number of rows is missing: a plan reads no file. Pass --rows, or write rows = ... "
            "under [guess] of the study."
        )
    return found


def _columns(study: Study, columns: int | None) -> int:
    known = None if study.schema is None else study.schema.n_features
    if known is not None and columns not in (None, known):
        raise InvalidArgument(
            f"--columns {columns} and the schema says {known} encoded columns. Leave --columns out."
        )
    found = columns if known is None else known
    if found is None:
        raise InvalidArgument(
            "The number of columns is missing. Pass --columns, or a schema that says it."
        )
    return found


def _check_metric(model: Any, for_r2: float | None, for_auc: float | None) -> None:
    classifies = hasattr(model, "classes")
    if for_r2 is not None and for_auc is not None:
        raise InvalidArgument("Ask for one thing: --for-r2 or --for-auc.")
    if classifies == (for_auc is None):
        right = "--for-auc" if classifies else "--for-r2"
        raise InvalidArgument(f"{type(model).__name__} is measured otherwise. Use {right}.")


def _check_plot(plot: Path) -> None:
    from importlib.util import find_spec

    if plot.suffix not in (".svg", ".png", ".pdf"):
        raise InvalidArgument(f"{plot} must end in .svg, .png or .pdf, which say how to draw it.")
    if find_spec("matplotlib") is None:
        raise InvalidArgument('A plot needs matplotlib. Install it with pip install "riata[plot]".')


def _print_comparison(found: Comparison, derived: list[tuple[str, str]]) -> None:
    console, first = out(), found.best.plan
    console.print(Text(f"Plans for {first.budget}: nothing is charged and no row is read.", "bold"))
    console.print(
        f"{shape_of(first.problem.n_rows, first.problem.n_features)}. Guess: {found.guessed}.",
        markup=False,
    )
    for name, fact in derived:
        console.print(Text(f"From the schema: {name}: {fact}."), style="dim")
    head, *lines = _fitting(found.rows(), terminal_width())
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(
            name, no_wrap=True, justify="left" if name in ("solver", "noise per step") else "right"
        )
    for line, each in zip(lines, found.candidates, strict=True):
        table.add_row(*line, style="bold" if each.chosen else "")
    answer_table(table)
    if any(each.chosen for each in found.candidates):
        console.print(Text("* is what the estimator takes by itself. Times are rough."))
    for reason, names in _not_simulated(found).items():
        console.print(Text(f"Not simulated: {', '.join(names)}. {reason}."), style="dim")
    if found.unplanned:
        why = "its plan alone takes minutes on so many columns. Ask for it with --solver"
        left_out = ", ".join(found.unplanned)
        console.print(Text(f"Not planned: {left_out}, because {why}."), style="dim")
    if found.impossible:
        console.print(Text(f"Not possible here: {', '.join(found.impossible)}."), style="dim")


def _fitting(rows: list[tuple[str, ...]], width: int | None) -> list[tuple[str, ...]]:
    """Without columns that a narrow terminal has no room for."""
    for name in ("noise per step", "memory", "80% interval"):
        needed = sum(2 + max(map(len, column)) for column in zip(*rows, strict=True)) - 2
        if width is not None and needed > width and name in rows[0]:
            place = rows[0].index(name)
            rows = [row[:place] + row[place + 1 :] for row in rows]
    return rows


def _not_simulated(found: Comparison) -> dict[str, list[str]]:
    """Why there is no forecast, and for which solvers: each reason once."""
    reasons: dict[str, list[str]] = {}
    for each in found.candidates:
        if each.because:
            because = each.because[:1].upper() + each.because[1:].removesuffix(".")
            reasons.setdefault(because, []).append(each.solver)
    return reasons


def _comparison_facts(found: Comparison) -> dict[str, Any]:
    first = found.best.plan
    return {
        "rows": first.problem.n_rows,
        "columns": first.problem.n_features,
        "epsilon": first.budget.epsilon,
        "delta": first.budget.delta,
        "adjacency": first.budget.adjacency,
        "guess": found.guessed,
        "solvers": [
            {
                "solver": each.solver,
                "chosen": each.chosen,
                "steps": each.plan.steps,
                "noise": each.noise,
                "releases": list(each.plan.releases),
                "seconds": each.cost.seconds,
                "bytes": each.cost.bytes,
                "forecast": None if each.forecast is None else forecast_facts(each.forecast),
                "not_simulated": each.because or None,
            }
            for each in found.candidates
        ],
        "impossible": found.impossible,
    }


def _required_facts(found: Required) -> dict[str, Any]:
    return {
        "over": found.over,
        "value": found.value,
        "score": found.score,
        "sure": found.sure,
        "forecast": forecast_facts(found.forecast),
        "tried": [
            {"value": value, "score": each.score, "interval": each.interval}
            for value, each in found.tried
        ],
        "sentence": found.sentence,
    }
