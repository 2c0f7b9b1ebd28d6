"""`riata evaluate`: how well a model does on rows that it never saw."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from riata.cli.console import AsJson, Force, Yes, answer, answer_json, check_unused, note, warning
from riata.cli.fit import confirm_spending, ledger_facts, require_consent, show_charge
from riata.cli.ledger import Dataset, Head
from riata.cli.options import MaxBytes, ModelFile
from riata.errors import InvalidArgument
from riata.files.limit import MAX_BYTES

if TYPE_CHECKING:
    from riata.data import Schema, Source
    from riata.evaluation import Evaluation, PrivateScore
    from riata.privacy.ledger import Ledger

SCORES = "accuracy for classes; absolute-error or squared-error for numbers"


def evaluate(
    model: ModelFile,
    data: Annotated[Path, typer.Option(help="Rows with targets that the fit did not see.")],
    public: Annotated[
        bool, typer.Option("--public", help="The rows are public: exact scores, free of charge.")
    ] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="The rows are private: what one noisy score may cost.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="As for a fit.")] = None,
    scoring: Annotated[str, typer.Option(help=f"Of private rows: {SCORES}.")] = "auto",
    rows: Annotated[
        int | None, typer.Option(help="A public number of rows, in place of the schema's.", min=1)
    ] = None,
    people: Annotated[
        int | None, typer.Option(help="The same of people, where the schema names them.", min=1)
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that is charged.")] = None,
    head: Head = None,
    dataset: Dataset = None,
    out: Annotated[Path | None, typer.Option(help="A page with plots (.html).")] = None,
    force: Force = False,
    max_bytes: MaxBytes = MAX_BYTES,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Score a model on rows that were held out: public ones exactly, private ones with noise."""
    from riata.model_file import load  # with scikit-learn, which is slow to import
    from riata.privacy.ledger import Ledger

    sizes = {"rows": rows, "people": people}
    said = {name: number for name, number in sizes.items() if number is not None}
    _check(public, epsilon, ledger, said)
    check_unused(out, force)
    if epsilon is not None:
        require_consent(yes, "A private score")
    found = load(model, max_bytes=max_bytes)
    source = _public_rows(found, data) if public else _private_rows(found, data, said)
    opened = None if ledger is None else Ledger.open(ledger, dataset=dataset, head=head)
    result: Evaluation | PrivateScore
    if epsilon is None:
        from riata.evaluation import evaluate as exactly

        result = exactly(found, source)
    else:
        result = _charged(found, source, (epsilon, delta, scoring), opened, yes)
    if out is not None:
        _write(found, out, result)
    if as_json:
        more = {} if opened is None else {"ledger": ledger_facts(opened)}
        answer_json(_facts(result) | more | ({} if out is None else {"out": str(out)}))
        return
    answer(str(result))
    if public:
        note("These scores are exact: they are for rows that nobody needs to protect.")
    if out is not None:
        answer(f"Wrote {out}")


def _check(public: bool, epsilon: float | None, ledger: str | None, said: dict[str, int]) -> None:
    """Whoever evaluates says whose rows they are: nothing is released by default."""
    if public == (epsilon is not None):
        both = "are both there" if public else "are both missing"
        raise InvalidArgument(
            f"--public and --epsilon {both}. An exact score reveals the rows that it is computed "
            "on: pass --public if nobody needs to protect them, or --epsilon (and --ledger) if "
            "they are private."
        )
    if public and ledger is not None:
        raise InvalidArgument(
            "--public charges nothing, so there is nothing for --ledger. Leave one of them out."
        )
    for name in said if public else ():
        raise InvalidArgument(
            f"--{name} fixes a number that is not known to everybody, and with --public each row "
            f"of the file counts once. Leave --{name} out."
        )


def _schema(model: Any) -> Schema:
    schema: Schema | None = getattr(model, "schema_", None)
    if schema is None:
        raise InvalidArgument(
            "The model was fitted without a schema, so riata cannot read a file for it. Evaluate "
            "it in Python, with riata.evaluation."
        )
    return schema


def _public_rows(model: Any, data: Path) -> Source:
    """As many as the file has; each row counts once, whoever it belongs to."""
    from riata.data import read

    alone = replace(_schema(model), person="", rows_of_a_person=1, people=None, rows=None)
    return read(data, replace(alone, ignore_others=True))


def _private_rows(model: Any, data: Path, said: dict[str, int]) -> Source:
    """As many as the schema says: a number that it fixes is not counted in the file instead."""
    from riata.data import Schema, read

    schema = _schema(model)
    name = "people" if schema.person else "rows"
    for other in said.keys() - {name}:
        raise InvalidArgument(
            f"--{other} does not go with the schema of the model, which "
            f"{'names' if schema.person else 'does not name'} a person column: what counts there "
            f"is the number of {name}. Pass --{name}, or leave it out."
        )
    if said:
        schema = Schema.from_table(schema.table() | said)
    elif schema.fixes_size:
        note(
            f"The schema says {name} = {getattr(schema, name)}. If the file has fewer, blank rows "
            f"stand for the others in the score: pass --{name} if another number is public."
        )
    return read(data, schema)


def _charged(
    model: Any, rows: Source, asked: tuple[float, float | None, str], ledger: Any, yes: bool
) -> PrivateScore:
    from riata.evaluation import plan_score
    from riata.evaluation.private import run_score
    from riata.mechanisms.noise import Noise

    epsilon, delta, scoring = asked
    planned = plan_score(model, rows, epsilon=epsilon, delta=delta, scoring=scoring)
    note(str(planned))
    _show_ledger(ledger, planned)
    confirm_spending("Spend this, and score?", yes)
    return run_score(planned, Noise(None), ledger)


def _show_ledger(ledger: Ledger | None, planned: Any) -> None:
    if ledger is None:
        warning("No ledger records this score, and nobody adds up what is spent.")
    else:
        show_charge(ledger, planned.event, planned.unit)


def _write(model: Any, out: Path, result: Evaluation | PrivateScore) -> None:
    from riata.report import write
    from riata.report.evaluation import evaluation_sections

    write(model, out, sections=evaluation_sections(result))


def _facts(result: Evaluation | PrivateScore) -> dict[str, Any]:
    from riata.evaluation import PrivateScore

    if isinstance(result, PrivateScore):
        return asdict(result) | {"private": not result.seeded, "sentence": result.sentence}
    return {
        "model": result.model, "rows": result.n_rows, "unknown": result.n_unknown,
        "scores": result.scores, "constant": result.constant, "private": False,
    }  # fmt: skip
