"""`riata fit`: show the plan, ask, charge, read, fit, write."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from riata.cli import options as given
from riata.cli.exits import STOPPED
from riata.cli.guesses import forecast_facts, forecast_of
from riata.cli.study import Study
from riata.cli.talk import AsJson, answer, answer_json, asked, err, note, warning, watched
from riata.errors import BudgetExceeded, InvalidArgument

if TYPE_CHECKING:
    from riata.privacy.events import Event
    from riata.privacy.ledger import Ledger
    from riata.privacy.unit import PrivacyUnit
    from riata.solvers import Plan

MODEL, STATEMENT, REPORT = "model.riata", "statement", "report.html"


def fit(
    study: given.StudyFile = None,
    data: Annotated[Path | None, typer.Option(help="The rows: Parquet, CSV, svmlight.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for model and report.")] = None,
    schema: given.SchemaFile = None,
    estimator: given.Estimator = None,
    epsilon: given.Epsilon = None,
    delta: given.Delta = None,
    adjacency: given.Adjacency = None,
    radius: given.Radius = None,
    row_length: given.RowLength = None,
    solver: given.SolverName = None,
    steps: given.Steps = None,
    sparsity: given.Sparsity = None,
    intercept: given.Intercept = None,
    others: given.Others = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that is charged.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Which ledger of a database.")] = None,
    head: Annotated[Path | None, typer.Option(help="The ledger's head, if elsewhere.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file with which a stopped fit can go on.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="auto, local, numba, numpy, scan, disk or dask.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="For tests: known noise, no privacy.")] = None,
    title: Annotated[str | None, typer.Option(help="The title of the report.")] = None,
    forecast: Annotated[
        bool, typer.Option(help="Forecast the fit, if the study has a [guess].")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Spend without being asked.")] = False,
    force: Annotated[bool, typer.Option(help="Replace a model in the folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model: the plan is shown, then charged, and only then a row is read."""
    said = given.study_of(
        study,
        {
            "data": data, "out": out, "schema": schema, "estimator": estimator,
            "budget": {"epsilon": epsilon, "delta": delta, "adjacency": adjacency},
            "parameters": given.parameters(
                radius, solver, steps, sparsity, intercept, engine, others
            ),
            "row_length": row_length, "checkpoint": checkpoint, "seed": seed,
            "ledger": {"path": ledger, "dataset": dataset, "head": head and str(head)},
        },
    )  # fmt: skip
    if said.grid:
        raise InvalidArgument(
            "The study has a [grid], and a fit tries one set of parameters. Search it with "
            "`riata tune`, or take the grid out."
        )
    folder = checked(said, force, yes)
    from riata.data import read
    from riata.fitting import plan as planned

    opened = said.open_ledger()
    model = said.model(for_source=True, ledger=opened, verbose=watched())
    model.check_parameters()
    assert said.schema is not None
    source = read(said.data, said.schema, random_state=said.seed)
    say_counting(said)
    plan = planned(model.request(source)[0]).plan
    expected = _shown(said, plan, opened, forecast)
    if not yes and not asked("Spend this, and fit?"):
        note("Nothing was charged, and no row was read.")
        raise typer.Exit(0)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        model.fit(source, checkpoint=said.checkpoint)
    except KeyboardInterrupt:
        _stopped(said, opened)
        raise typer.Exit(STOPPED) from None
    files = written(model, folder, opened, expected, title)
    if as_json:
        answer_json(
            {
                "files": files,
                "statement": model.privacy_.to_dict(),
                "forecast": None if expected is None else forecast_facts(expected),
                "ledger": None if opened is None else left(opened),
            }
        )
        return
    answer(model.privacy_.sentence, "" if model.privacy_.private else "bold red")
    for place in files.values():
        answer(f"Wrote {place}")


def checked(said: Study, force: bool, yes: bool) -> Path:
    """The folder for the model. What can be wrong without a look at the data is found first."""
    for name, value, example in (
        ("schema", said.schema, "--schema claims.toml"),
        ("data", said.data, "--data claims.parquet"),
        ("out", said.out, "--out model/"),
    ):
        if value is None:
            hint = " `riata schema draft` helps to write one." if name == "schema" else ""
            raise InvalidArgument(
                f"The fit has no {name}. Pass {example}, or write {name} = ... into the study."
                f"{hint}"
            )
    assert said.out is not None
    if (said.out / MODEL).exists() and not force:
        raise InvalidArgument(
            f"{said.out / MODEL} exists, and it was paid for. Choose another folder, or pass "
            "--force."
        )
    if said.out.exists() and not said.out.is_dir():
        raise InvalidArgument(f"{said.out} is not a folder. Choose another name for --out.")
    if not yes and not sys.stdin.isatty():
        raise InvalidArgument(
            "A fit spends budget for good, and there is no terminal to ask for your consent. "
            "Look at the plan with `riata plan`, then pass --yes."
        )
    return said.out


def say_counting(said: Study) -> None:
    assert said.schema is not None
    if said.schema.person and said.schema.people is None:
        note(
            f"Counting the people in {said.data}: only ids are looked at, and the number is public."
        )
    elif not said.schema.person and said.schema.rows is None:
        note(f"Counting the rows of {said.data}: their number is public, and no cell is looked at.")


def _shown(said: Study, plan: Plan, ledger: Ledger | None, wanted: bool) -> Any:
    """Show the plan, the forecast and what the ledger will say; returns the forecast."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    for key, value in plan.rows():
        table.add_row(key, Text(value))
    err().print(Text(f"\nPlan for {plan.budget}", "bold"))
    err().print(table)
    if said.seed is not None:
        warning("--seed makes the noise known: the model protects nobody. It is for tests.")
    expected = None
    if wanted and said.guess is not None:
        expected = forecast_of(said, plan.problem.n_rows, plan.problem.n_features)
        note()
        note(expected.sentence)
    note()
    if ledger is None:
        if said.seed is None:
            warning(
                "No ledger records this fit, and nobody adds up what is spent. See riata ledger."
            )
    else:
        _foreseen(said, plan, ledger)
    return expected


def _foreseen(said: Study, plan: Plan, ledger: Ledger) -> None:
    """The same for a fit, which may go on from where it was charged."""
    if _charged_before(said, ledger):
        note(f"Goes on from {said.checkpoint}: the ledger was charged when the fit began.")
        return
    from riata.privacy.unit import PrivacyUnit

    person = "" if said.schema is None else said.schema.person
    foreseen(ledger, plan.cost, PrivacyUnit.of(plan.budget, person))


def foreseen(ledger: Ledger, cost: Event, unit: PrivacyUnit) -> None:
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


def _charged_before(said: Study, ledger: Ledger) -> bool:
    """Whether the run of the checkpoint is in the ledger. The fit itself checks the file."""
    if said.checkpoint is None or not said.checkpoint.is_file():
        return False
    with said.checkpoint.open("rb") as file:
        body = file.readline().partition(b" ")[2]
    try:
        run = json.loads(body)["id"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(run, str) and ledger.charge_of(run) is not None


def _stopped(said: Study, ledger: Ledger | None) -> None:
    note()
    charged = "" if ledger is None else " What the ledger was charged stays charged."
    if said.checkpoint is None:
        note(
            f"Stopped.{charged} Without --checkpoint a fit cannot go on: another one costs anew.",
            "bold",
        )
        return
    note(f"Stopped.{charged} The releases so far are in {said.checkpoint}.", "bold")
    again = shlex.join(["riata", *sys.argv[1:]])
    note(f"Go on, at no further cost, with the same command:\n  {again}")


def written(
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


def left(ledger: Ledger) -> dict[str, Any]:
    spent = ledger.spent
    return {
        "dataset": ledger.dataset, "spent": spent.epsilon, "delta": spent.delta,
        "ceiling": ledger.ceiling.epsilon, "charges": len(ledger.charges),
    }  # fmt: skip
