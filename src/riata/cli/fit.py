"""`riata fit`: show the plan, ask, charge, read, fit, write."""

from __future__ import annotations

import json
import math
import shlex
import sys
import warnings
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from riata.cli.console import (
    AsJson,
    Force,
    Yes,
    answer,
    answer_json,
    confirmed,
    err,
    note,
    shows_progress,
    warning,
)
from riata.cli.exits import STOPPED
from riata.cli.forecasts import forecast_facts, forecast_of
from riata.cli.options import study_command
from riata.cli.study import Study
from riata.cli.summary import SHOWN, show_summary, summary_facts
from riata.errors import BudgetExceeded, DataError, DataQualityWarning, InvalidArgument

if TYPE_CHECKING:
    from riata.data import Schema, Source
    from riata.fitting import PlannedFit
    from riata.privacy.events import Event
    from riata.privacy.ledger import Ledger
    from riata.privacy.statement import Statement
    from riata.privacy.unit import PrivacyUnit

#: Counts whose noise may be a larger part of the rows say nothing.
MOST_NOISE = 0.5

#: Rows times epsilon below which a fit is warned about: there the private estimate of how good it
#: is has an error of 1, from a constant to a perfect model (six columns; 0.3 to 1 at 1,000).
FEW_ROWS = 500

MODEL, STATEMENT, REPORT = "model.riata", "statement", "report.html"


@study_command(
    "data", "out", "schema", "estimator", "epsilon", "delta", "adjacency", "radius", "row_length",
    "solver", "steps", "sparsity", "unpenalized", "intercept", "others", "data_quality", "ledger",
    "dataset", "head", "checkpoint", "engine", "seed",
)  # fmt: skip
def fit(
    study: Study,
    title: Annotated[str | None, typer.Option(help="The title of the report.")] = None,
    forecast: Annotated[
        bool, typer.Option(help=r"Forecast the fit, if the study has a \[guess].")
    ] = True,
    yes: Yes = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model: the plan is shown, then charged, and only then a row is read."""
    if study.grid:
        raise InvalidArgument(
            "The study has a [grid], and a fit tries one set of parameters. Search it with "
            "`riata tune`, or take the grid out."
        )
    folder = checked_folder(study, force, yes)
    from riata.fitting import plan

    ledger = study.open_ledger()
    if study.schema is not None and not study.schema.unnamed:
        study = replace(study, parameters={"data_quality": True} | dict(study.parameters))
    model = study.model(for_source=True, ledger=ledger, verbose=shows_progress())
    model.check_parameters()
    source = open_source(study, random_state=study.seed)
    planned = plan(model.request(source)[0])
    expected = _show(study, planned, ledger, forecast)
    confirm_spending("Spend this, and fit?", yes)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataQualityWarning)  # said below
            model.fit(source, checkpoint=study.checkpoint)
    except KeyboardInterrupt:
        _show_stopped(study, ledger)
        raise typer.Exit(STOPPED) from None
    files = write_files(model, folder, ledger, expected, title)
    if as_json:
        answer_json(
            {
                "files": files,
                "statement": model.privacy_.to_dict(),
                "summary": summary_facts(model),
                "forecast": None if expected is None else forecast_facts(expected),
                "ledger": None if ledger is None else ledger_facts(ledger),
                "data_quality": quality_facts(model),
            }
        )
        return
    show_quality(model)
    show_model(model, files.values())


def checked_folder(study: Study, force: bool, yes: bool) -> Path:
    """The folder for the model. What can be wrong without a look at the data is found first."""
    for name, value, example in (
        ("schema", study.schema, "--schema claims.toml"),
        ("data", study.data, "--data claims.parquet"),
        ("out", study.out, "--out model/"),
    ):
        if value is None:
            hint = " `riata schema draft` helps to write one." if name == "schema" else ""
            raise InvalidArgument(
                f"The fit has no {name}. Pass {example}, or write {name} = ... into the study."
                f"{hint}"
            )
    assert study.out is not None
    if (study.out / MODEL).exists() and not force:
        raise InvalidArgument(
            f"{study.out / MODEL} exists, and it was paid for. Choose another folder, or pass "
            "--force."
        )
    if study.out.exists() and not study.out.is_dir():
        raise InvalidArgument(f"{study.out} is not a folder. Choose another name for --out.")
    require_consent(yes, "A fit", " Look at the plan with `riata plan`, then pass --yes.")
    return study.out


def require_consent(yes: bool, what: str, advice: str = " Pass --yes.") -> None:
    """Raise if nobody can be asked."""
    if not yes and not sys.stdin.isatty():
        raise InvalidArgument(
            f"{what} spends budget for good, and there is no terminal to ask for your consent."
            f"{advice}"
        )


def open_source(study: Study, random_state: int | None = None) -> Source:
    """The rows of a study. Their number is counted if nobody says it; a note says so before."""
    from riata.data import read

    assert study.schema is not None
    source = read(study.data, study.schema, random_state=random_state)
    if study.schema.person and study.schema.people is None:
        note(
            f"Counting the people in {study.data}: only ids are looked at, and the number is "
            "public. Rows without an id are left out."
        )
    elif not study.schema.person and study.schema.rows is None:
        note(
            f"Counting the rows of {study.data}: their number is public, and no cell is looked at."
        )
    else:
        _note_fixed_number(study.schema)
    if source.n_rows == 0:
        raise DataError(f"{study.data} has no rows: there is nothing to fit.")
    return source


def _note_fixed_number(schema: Schema) -> None:
    """Say what happens where the schema says how many rows or people there are."""
    what, number = ("people", schema.people) if schema.person else ("rows", schema.rows)
    note(
        f"The fit counts {number:,} {what}, as the schema says: more of them are left out, and for "
        "fewer there are blank rows."
    )


def confirm_spending(question: str, yes: bool) -> None:
    """End the command unless the person at the terminal agrees."""
    if not yes and not confirmed(question):
        note("Nothing was charged, and no row was read.")
        raise typer.Exit(0)


def show_model(model: Any, places: Iterable[object]) -> None:
    """What a fit came to: the largest coefficients, and where everything is."""
    answer()
    show_summary(model, most=SHOWN)
    answer()
    show_files(model.privacy_, places)


def show_files(statement: Statement, places: Iterable[object]) -> None:
    answer(statement.sentence, "" if statement.private else "bold red")
    for place in places:
        answer(f"Wrote {place}")


def quality_facts(model: Any) -> dict[str, Any] | None:
    """What was counted about the rows, for a program."""
    found = getattr(model, "data_quality_", None)
    return None if found is None else {**asdict(found), "sentences": list(found.sentences)}


def show_quality(model: Any) -> None:
    """Say what is wrong with the rows, as far as it stands out from the noise."""
    found = getattr(model, "data_quality_", None)
    if found is None:
        return
    for sentence in found.sentences:
        warning(sentence)
    if found.hint:
        note(found.hint)
    if not found.sentences and 2 * found.error > MOST_NOISE:
        note("Data quality: there are too few rows at this epsilon to count what is wrong.")
    elif not found.sentences:
        note(
            "Data quality: no column stands out, with counts that are right within about "
            f"{2 * found.error:.0%} of the rows, and {2 * found.target_error:.0%} for the target."
        )


def _show(study: Study, planned: PlannedFit, ledger: Ledger | None, wanted: bool) -> Any:
    """Show the plan, the forecast and what the ledger will say; returns the forecast."""
    plan = planned.plan
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    for key, value in [*plan.rows(), *_derived(planned)]:
        table.add_row(key, Text(value))
    err().print(Text(f"\nPlan for {plan.budget}", "bold"))
    err().print(table)
    if study.seed is not None:
        warning("--seed makes the noise known: the model protects nobody. It is for tests.")
    _warn(planned)
    expected = None
    if wanted and study.guess is not None:
        study = replace(study, schema=planned.request.schema)
        expected = forecast_of(study, plan.problem.n_rows, plan.problem.n_features)
        note()
        note(expected.sentence)
    note()
    if ledger is None:
        if study.seed is None:
            warning(
                "No ledger records this fit, and nobody adds up what is spent. See riata ledger."
            )
    else:
        _show_charge(study, planned, ledger)
    return expected


def _derived(planned: PlannedFit) -> list[tuple[str, str]]:
    schema = planned.request.schema
    return [] if schema is None else [("schema", f"{n}: {fact}") for n, fact in schema.derived]


def _warn(planned: PlannedFit) -> None:
    """What somebody who chose these numbers may not have meant. Public facts decide alone."""
    from riata.fitting.statement import DELTA_NOTE, WEAK_NOTE, is_large
    from riata.privacy.budget import WEAK_EPSILON

    budget, rows = planned.plan.budget, planned.plan.problem.n_rows
    if rows * budget.epsilon < FEW_ROWS:
        warning(
            f"The number of rows, {rows:,}, is small for epsilon {budget.epsilon:g}: the noise "
            "will hide most of what there is. `riata plan` shows what to expect."
        )
    if math.isinf(budget.epsilon):
        warning("epsilon is infinite: the fit has no noise, and the model protects nobody.")
    if WEAK_EPSILON < budget.epsilon < math.inf:
        warning(WEAK_NOTE)
    if is_large(budget.delta, planned.plan):
        warning(DELTA_NOTE)


def _warn_of_repetition(planned: PlannedFit, ledger: Ledger) -> None:
    """Say if the ledger has a charge for the very same fit."""
    same = planned.identity().digest
    before = [charge.seq for charge in ledger.charges if charge.summary.get("request") == same]
    if before:
        warning(
            f"The same fit was charged before (charge {before[-1]}): another one has other noise "
            "and costs as much again."
        )


def _show_charge(study: Study, planned: PlannedFit, ledger: Ledger) -> None:
    """The same for a fit, which may go on from where it was charged."""
    if _charged_before(study, ledger):
        note(f"Goes on from {study.checkpoint}: the ledger was charged when the fit began.")
        return
    _warn_of_repetition(planned, ledger)
    show_charge(ledger, planned.plan.cost, planned.unit)


def show_charge(ledger: Ledger, cost: Event, unit: PrivacyUnit) -> None:
    """Say what the ledger will have spent, or refuse what is beyond its ceiling."""
    after, ceiling = ledger.after(cost, adjacency=unit.adjacency, unit=unit), ledger.ceiling
    note(
        f"Ledger of {ledger.dataset!r}: epsilon {ledger.spent.epsilon:.6g} is spent, and after "
        f"this {after.epsilon:.6g}, under a ceiling of {ceiling.epsilon:g} at delta "
        f"{ceiling.delta:g}."
    )
    if after.epsilon > ceiling.epsilon:
        raise BudgetExceeded(
            f"That is more than the ceiling of {ceiling.epsilon:g}. Nothing was charged, and no "
            "row was read. Ask for a smaller epsilon."
        )


def _charged_before(study: Study, ledger: Ledger) -> bool:
    """Whether the run of the checkpoint is in the ledger. The fit itself checks the file."""
    if study.checkpoint is None or not study.checkpoint.is_file():
        return False
    with study.checkpoint.open("rb") as file:
        body = file.readline().partition(b" ")[2]
    try:
        run = json.loads(body)["id"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(run, str) and ledger.charge_of(run) is not None


def _show_stopped(study: Study, ledger: Ledger | None) -> None:
    note()
    charged = "" if ledger is None else " What the ledger was charged stays charged."
    if study.checkpoint is None:
        note(
            f"Stopped.{charged} Without --checkpoint a fit cannot go on: another one costs anew.",
            "bold",
        )
        return
    note(f"Stopped.{charged} The releases so far are in {study.checkpoint}.", "bold")
    again = shlex.join(["riata", *sys.argv[1:]])
    note(f"Go on, at no further cost, with the same command:\n  {again}")


def write_files(
    model: Any, folder: Path, ledger: Ledger | None, expected: Any, title: str | None
) -> dict[str, str]:
    from riata.model_file import save

    files = {"model": folder / MODEL}
    save(model, files["model"])
    for ending, text in (
        (".json", json.dumps(model.privacy_.to_dict(), indent=1, default=str)),
        (".txt", str(model.privacy_)),
    ):
        files[STATEMENT + ending] = folder / f"{STATEMENT}{ending}"
        files[STATEMENT + ending].write_text(text + "\n", encoding="utf-8")
    from riata.report import write
    from riata.report.page import missing

    if missing():
        note("No report was written: install riata[report], then `riata report`.")
    else:
        files["report"] = folder / REPORT
        write(model, files["report"], ledger=ledger, forecast=expected, title=title)
    return {name: str(place) for name, place in files.items()}


def ledger_facts(ledger: Ledger) -> dict[str, Any]:
    spent = ledger.spent
    return {
        "dataset": ledger.dataset, "spent": spent.epsilon, "delta": spent.delta,
        "ceiling": ledger.ceiling.epsilon, "charges": len(ledger.charges),
    }  # fmt: skip
