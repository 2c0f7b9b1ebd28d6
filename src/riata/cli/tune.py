"""`riata tune`: choose parameters from a public grid, with one budget for all of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from riata.cli import options as given
from riata.cli.fit import checked, foreseen, left, say_counting, written
from riata.cli.study import Study
from riata.cli.talk import AsJson, answer, answer_json, asked, note, warning, watched
from riata.errors import InvalidArgument

if TYPE_CHECKING:
    from riata.tuning import PrivateSearch


def tune(
    study: given.StudyFile = None,
    data: Annotated[Path | None, typer.Option(help="The rows: Parquet, CSV, svmlight.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for model and report.")] = None,
    schema: given.SchemaFile = None,
    estimator: given.Estimator = None,
    epsilon: given.Epsilon = None,
    delta: given.Delta = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=[VALUES]", help="Values to try: --grid 'radius=[1, 5, 20]'."),
    ] = None,
    expected: Annotated[
        float | None, typer.Option(help="How many tries to expect. By default twice the grid.")
    ] = None,
    others: given.Others = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that is charged.")] = None,
    seed: Annotated[int | None, typer.Option(help="For tests: known noise, no privacy.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Spend without being asked.")] = False,
    force: Annotated[bool, typer.Option(help="Replace a model in the folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search a grid of parameters: the total is shown, then charged, and only then a row is read.

    A random number of candidates is tried. How many, and how the others did, stays secret.
    """
    said = given.study_of(
        study,
        {
            "data": data, "out": out, "schema": schema, "estimator": estimator,
            "budget": {"epsilon": epsilon, "delta": delta},
            "parameters": given.settings(others), "grid": given.settings(grid),
            "expected": expected, "seed": seed, "ledger": {"path": ledger},
        },
    )  # fmt: skip
    folder = checked(said, force, yes)
    from riata.data import read
    from riata.privacy.unit import PrivacyUnit

    opened = said.open_ledger()
    search = _search(said, opened)
    assert said.schema is not None
    source = read(said.data, said.schema)
    say_counting(said)
    plan = search.plan_for(source)
    note(f"\n{plan}\n")
    if said.seed is not None:
        warning("--seed makes the noise known: the model protects nobody. It is for tests.")
    if opened is None:
        warning("No ledger records this search, and nobody adds up what is spent.")
    else:
        foreseen(opened, plan.event, PrivacyUnit(plan.budget.adjacency))
    if not yes and not asked("Spend this, and search?"):
        note("Nothing was charged, and no row was read.")
        raise typer.Exit(0)
    folder.mkdir(parents=True, exist_ok=True)
    search.fit(source)
    model = search.best_estimator_
    files = written(model, folder, opened, None, None)
    if as_json:
        answer_json(
            {
                "files": files,
                "parameters": search.best_params_,
                "score": search.best_score_,
                "score_error": search.best_score_error_,
                "statement": model.privacy_.to_dict(),
                "ledger": None if opened is None else left(opened),
            }
        )
        return
    answer(f"Found {', '.join(f'{name}={value!r}' for name, value in search.best_params_.items())}")
    answer(f"Score {search.best_score_:.4g}, with noise of {search.best_score_error_:.2g}")
    answer(model.privacy_.sentence, "" if model.privacy_.private else "bold red")
    for place in files.values():
        answer(f"Wrote {place}")


def _search(said: Study, ledger: Any) -> PrivateSearch:
    from riata.tuning import PrivateSearch

    if not said.grid:
        raise InvalidArgument(
            "There is no grid: the search needs values to choose from. Pass --grid "
            "'radius=[1, 5, 20]', or write them under [grid] of the study."
        )
    if said.checkpoint is not None:
        raise InvalidArgument(
            "A search has no checkpoint: how far it is would tell how many candidates were tried. "
            "Take checkpoint out of the study."
        )
    model = replace(said, seed=None, delta=None).model(for_source=True)
    model.set_params(epsilon=None)
    expected = "auto" if said.expected is None else said.expected
    return PrivateSearch(
        model, dict(said.grid), said.epsilon, said.delta, expected=expected, ledger=ledger,
        random_state=said.seed, verbose=watched(),
    )  # fmt: skip
