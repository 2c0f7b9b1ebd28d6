"""Options that several commands have, and the study that they make together with a file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from riata.cli.study import AUTO, ESTIMATORS, Study, load_study
from riata.errors import InvalidArgument

StudyFile = Annotated[
    Path | None,
    typer.Argument(metavar="[STUDY.TOML]", help="A study file. Options go before what it says."),
]
MaxBytes = Annotated[
    int, typer.Option(help="The most memory that a file from somebody else may take.", min=0)
]
SchemaFile = Annotated[Path | None, typer.Option(help="What the columns are (TOML).")]
Estimator = Annotated[
    str | None,
    typer.Option(
        help=f"One of {', '.join(ESTIMATORS)}. By default lasso, or logistic for classes.",
        autocompletion=lambda: [AUTO, *ESTIMATORS],
    ),
]
Epsilon = Annotated[float | None, typer.Option(help="How much privacy may be spent.")]
Delta = Annotated[
    float | None,
    typer.Option(help="By default 1e-6, or a tenth of 1 / rows if that is less. 0 for pure."),
]
Adjacency = Annotated[
    str | None,
    typer.Option(
        help="Which data sets are neighbours: replace-one or add-remove.",
        autocompletion=lambda: ["replace-one", "add-remove"],
    ),
]
Radius = Annotated[str | None, typer.Option(help="The largest norm of the coefficients.")]
RowLength = Annotated[
    float | None, typer.Option(help="A public bound on the length (l2 norm) of an encoded row.")
]
SolverName = Annotated[
    str | None,
    typer.Option("--solver", help="By default the rule of the page Choose.",
                 autocompletion=lambda: _solvers()),
]  # fmt: skip
Steps = Annotated[str | None, typer.Option(help="The number of private steps.")]
Sparsity = Annotated[int | None, typer.Option(help="How many coefficients are not 0, at most.")]
Intercept = Annotated[bool | None, typer.Option(help="Whether an intercept is fitted.")]
Others = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Another parameter of the estimator."),
]
Relevant = Annotated[int | None, typer.Option(help="Guess: how many columns matter.", min=1)]
Signal = Annotated[
    float | None, typer.Option(help="Guess: R2 of the best linear model, or for classes its AUC.")
]
Design = Annotated[
    str | None, typer.Option(help="Guess: entries are uniform, signs, normal or binary.")
]
Spread = Annotated[
    float | None, typer.Option(help="Guess: the standard deviation of the target over its bound.")
]


def _solvers() -> list[str]:
    from riata.solvers import SOLVERS

    return [AUTO, *SOLVERS]


def parameters(
    radius: str | None, solver: str | None, steps: str | None, sparsity: int | None,
    intercept: bool | None, engine: str | None, others: list[str] | None,
) -> dict[str, Any]:  # fmt: skip
    """Parameters of the estimator, from options."""
    found: dict[str, Any] = {
        "radius": _number(radius), "solver": solver, "steps": _number(steps),
        "sparsity": sparsity, "fit_intercept": intercept, "engine": engine,
    }  # fmt: skip
    return found | settings(others)


def settings(pairs: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE options."""
    found = {}
    for each in pairs or []:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise InvalidArgument(
                f"{each!r} does not say what is set to what. Write --set penalty=l2, or --grid "
                "'radius=[1, 5]'."
            )
        found[name.strip()] = _number(value.strip())
    return found


def study_of(file: Path | None, flags: dict[str, Any]) -> Study:
    """A study from a file and options; paths of options are as they are given."""
    paths = {name: str(value) for name, value in flags.items() if isinstance(value, Path)}
    return load_study(file, flags | paths)


def _number(text: str | None) -> Any:
    """A value as TOML has it, or the text itself."""
    if text is None:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
