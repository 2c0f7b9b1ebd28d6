"""`riata tune`: choose parameters from a public grid, with one budget for all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from riata.cli.console import AsJson, Force, Yes, answer, answer_json, note, shows_progress, warning
from riata.cli.fit import (
    checked_folder,
    confirm_spending,
    ledger_facts,
    open_source,
    show_charge,
    show_model,
    write_files,
)
from riata.cli.options import study_command
from riata.cli.study import Study
from riata.cli.summary import summary_facts
from riata.errors import InvalidArgument

if TYPE_CHECKING:
    from riata.tuning import PrivateSearch


@study_command(
    "data", "out", "schema", "estimator", "epsilon", "delta", "solver", "grid", "expected",
    "others", "ledger", "seed",
)  # fmt: skip
def tune(
    study: Study,
    yes: Yes = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Search a grid of parameters: the total is shown, then charged, and only then a row is read.

    A random number of candidates is tried. How many, and how the others did, stays secret.
    """
    folder = checked_folder(study, force, yes)
    from riata.privacy.unit import PrivacyUnit

    ledger = study.open_ledger()
    search = _search(study, ledger)
    source = open_source(study)
    plan = search.plan_for(source)
    note(f"\n{plan}\n")
    if study.seed is not None:
        warning("--seed makes the noise known: the model protects nobody. It is for tests.")
    if ledger is None:
        warning("No ledger records this search, and nobody adds up what is spent.")
    else:
        show_charge(ledger, plan.event, PrivacyUnit(plan.budget.adjacency))
    confirm_spending("Spend this, and search?", yes)
    folder.mkdir(parents=True, exist_ok=True)
    search.fit(source)
    model = search.best_estimator_
    files = write_files(model, folder, ledger, None, None)
    if as_json:
        answer_json(
            {
                "files": files,
                "parameters": search.best_params_,
                "score": search.best_score_,
                "score_error": search.best_score_error_,
                "statement": model.privacy_.to_dict(),
                "summary": summary_facts(model),
                "ledger": None if ledger is None else ledger_facts(ledger),
            }
        )
        return
    answer(f"Found {', '.join(f'{name}={value!r}' for name, value in search.best_params_.items())}")
    answer(f"Score {search.best_score_:.4g}, with noise of {search.best_score_error_:.2g}")
    show_model(model, files.values())


def _search(study: Study, ledger: Any) -> PrivateSearch:
    from riata.tuning import PrivateSearch

    if not study.grid:
        raise InvalidArgument(
            "There is no grid: the search needs values to choose from. Pass --grid "
            "'radius=[1, 5, 20]', or write them under [grid] of the study."
        )
    if study.checkpoint is not None:
        raise InvalidArgument(
            "A search has no checkpoint: how far it is would tell how many candidates were tried. "
            "Take checkpoint out of the study."
        )
    model = replace(study, seed=None, delta=None).model(for_source=True)
    model.set_params(epsilon=None)
    expected = "auto" if study.expected is None else study.expected
    return PrivateSearch(
        model, dict(study.grid), study.epsilon, study.delta, expected=expected, ledger=ledger,
        random_state=study.seed, verbose=shows_progress(),
    )  # fmt: skip
