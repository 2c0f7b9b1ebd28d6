"""The options that make a study together with a file, declared once for all commands."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer
from rich.markup import escape

from riata.cli.study import AUTO, ESTIMATORS, load_study
from riata.errors import InvalidArgument

StudyFile = Annotated[
    Path | None,
    typer.Argument(metavar="STUDY.TOML", help="A study file. Options override it."),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL.RIATA", help="A model file, as a fit writes it.")
]
MaxBytes = Annotated[
    int, typer.Option(help="The most memory that a file from somebody else may take.", min=0)
]


def _solvers() -> list[str]:
    from riata.solvers import SOLVERS

    return [AUTO, *SOLVERS]


def settings(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE options."""
    found = {}
    for each in pairs:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise InvalidArgument(
                f"{each!r} does not say what is set to what. Write --set penalty=l2, or --grid "
                "'radius=[1, 5]'."
            )
        found[name.strip()] = toml_value(value.strip())
    return found


def toml_value(text: str) -> Any:
    """A value as TOML has it, or the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


class StudyOption(NamedTuple):
    """An option of a command that stands for an entry of a study."""

    kind: Any
    help: str
    #: The entry: ``table.name``, or the name of a whole table.
    place: str
    #: From what is given to what the study has.
    parse: Callable[[Any], Any] | None = None
    #: Further arguments of `typer.Option`.
    how: Mapping[str, Any] = {}

    def annotation(self, name: str) -> Any:
        flag = self.how.get("flag", f"--{name.replace('_', '-')}")
        names = [flag, f"--no-{flag[2:]}"] if self.kind is bool else [flag]
        how = {key: value for key, value in self.how.items() if key != "flag"}
        option = typer.Option("/".join(names), help=escape(self.help), **how)
        return Annotated[self.kind | None, option]


STUDY_OPTIONS = {
    "data": StudyOption(Path, "The rows: Parquet, CSV, svmlight.", "data", str),
    "out": StudyOption(Path, "The folder for model and report.", "out", str),
    "schema": StudyOption(Path, "What the columns are (TOML).", "schema", str),
    "estimator": StudyOption(
        str, f"One of {', '.join(ESTIMATORS)}. By default lasso, or logistic for classes.",
        "estimator", how={"autocompletion": lambda: [AUTO, *ESTIMATORS]},
    ),
    "epsilon": StudyOption(float, "How much privacy may be spent.", "budget.epsilon"),
    "delta": StudyOption(
        float, "By default 1e-6, or a tenth of 1 / rows if that is less. 0 for pure.",
        "budget.delta",
    ),
    "adjacency": StudyOption(
        str,
        "Which data sets are neighbours: replace-one, add-remove, or replace-label, which protects "
        "targets alone.",
        "budget.adjacency",
        how={"autocompletion": lambda: ["replace-one", "add-remove", "replace-label"]},
    ),
    "radius": StudyOption(
        str, "The largest norm of the coefficients.", "parameters.radius", toml_value
    ),
    "row_length": StudyOption(
        float, "A public bound on the length (l2 norm) of an encoded row.", "row_length"
    ),
    "solver": StudyOption(
        str, "By default the rule of the page Choose.", "parameters.solver",
        how={"autocompletion": _solvers},
    ),
    "steps": StudyOption(str, "The number of private steps.", "parameters.steps", toml_value),
    "sparsity": StudyOption(
        int, "How many coefficients are not 0, at most.", "parameters.sparsity"
    ),
    "unpenalized": StudyOption(
        str, "Columns that are always in the model: --unpenalized age,sex.",
        "parameters.unpenalized", lambda text: [toml_value(one.strip()) for one in text.split(",")],
    ),
    "intercept": StudyOption(bool, "Whether an intercept is fitted.", "parameters.fit_intercept"),
    "others": StudyOption(
        list[str], "Another parameter of the estimator.", "parameters", settings,
        {"flag": "--set", "metavar": "NAME=VALUE"},
    ),
    "grid": StudyOption(
        list[str], "Values to try: --grid 'radius=[1, 5, 20]'.", "grid", settings,
        {"metavar": "NAME=[VALUES]"},
    ),
    "expected": StudyOption(
        float, "How many tries to expect. By default twice the grid.", "expected"
    ),
    "data_quality": StudyOption(
        bool, "Count missing and impossible cells, for a hundredth of the budget. The default.",
        "parameters.data_quality",
    ),
    "ledger": StudyOption(str, "The ledger that is charged.", "ledger.path"),
    "dataset": StudyOption(str, "Which ledger of a database.", "ledger.dataset"),
    "head": StudyOption(Path, "The ledger's head, if elsewhere.", "ledger.head", str),
    "checkpoint": StudyOption(
        Path, "A file with which a stopped fit can go on.", "checkpoint", str
    ),
    "engine": StudyOption(
        str, "auto, local, numba, numpy, scan, disk or dask.", "parameters.engine"
    ),
    "seed": StudyOption(int, "For tests: known noise, no privacy.", "seed"),
    "relevant": StudyOption(
        int, "Guess: how many columns matter.", "guess.relevant", how={"min": 1}
    ),
    "signal": StudyOption(
        float, "Guess: R2 of the best linear model, or for classes its AUC.", "guess.signal"
    ),
    "design": StudyOption(
        str, "Guess: entries are uniform, signs, normal or binary.", "guess.design"
    ),
    "spread": StudyOption(
        float, "Guess: the standard deviation of the target over its bound.", "guess.spread"
    ),
    "positives": StudyOption(float, "Guess: the share of the second class.", "guess.positives"),
    "density": StudyOption(
        float, "Guess: the share of entries that are not 0, for binary ones.", "guess.density"
    ),
    "correlation": StudyOption(
        float, "Guess: the correlation of two columns.", "guess.correlation"
    ),
    "nonzeros": StudyOption(
        int, "Guess: how many entries of a short row are not 0.", "guess.nonzeros", how={"min": 1}
    ),
}  # fmt: skip


def study_command(
    *names: str, flags: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with some of `STUDY_OPTIONS`, which gets the study and its own options.

    `flags` makes further entries by place from all options, and the path of the file as "study".
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = list(inspect.signature(command).parameters.values())[1:]

        def run(study: Path | None = None, **options: Any) -> None:
            more = {} if flags is None else flags({"study": study, **options})
            table = _entries({name: options.pop(name) for name in names}, more)
            command(load_study(study, table), **options)

        given = {"study": StudyFile} | {
            name: STUDY_OPTIONS[name].annotation(name) for name in names
        }
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            *(inspect.Parameter(name, keyword, default=None, annotation=each)
              for name, each in given.items()),
            *(each.replace(kind=keyword, annotation=hints[each.name]) for each in own),
        ]  # fmt: skip
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__name__, run.__doc__, run.__module__ = (
            command.__name__, command.__doc__, command.__module__,
        )  # fmt: skip
        return run

    return decorate


def _entries(options: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a study, from options and from entries by place."""
    by_place: dict[str, Any] = {}
    for name, value in options.items():
        if value is not None:
            option = STUDY_OPTIONS[name]
            by_place[option.place] = value if option.parse is None else option.parse(value)
    tables: dict[str, Any] = {}
    for place, value in (by_place | dict(more)).items():
        table, dot, name = place.partition(".")
        if dot:
            tables.setdefault(table, {})[name] = value
        elif isinstance(value, Mapping):
            tables.setdefault(table, {}).update(value)
        elif value is not None:
            tables[place] = value
    return tables
