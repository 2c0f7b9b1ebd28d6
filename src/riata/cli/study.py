"""A study: what is fitted to what, within which budget. A file, flags, or both."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from riata.errors import InvalidArgument
from riata.files import fields
from riata.files.limit import MAX_BYTES, ReadLimit
from riata.files.text import parse_toml

if TYPE_CHECKING:  # scikit-learn is slow to import, and so is a database
    from riata.bounds import Bounds
    from riata.data import Schema
    from riata.privacy.ledger import Ledger

#: The estimators by the names that they have here.
ESTIMATORS = {
    "lasso": "PrivateLasso",
    "sparse": "PrivateSparseRegression",
    "heavy-tailed": "HeavyTailedRegression",
    "projected": "ProjectedRegression",
    "poisson": "PrivatePoissonRegression",
    "negative-binomial": "PrivateNegativeBinomialRegression",
    "gamma": "PrivateGammaRegression",
    "tweedie": "PrivateTweedieRegression",
    "quantile": "PrivateQuantileRegression",
    "cox": "PrivateCoxRegression",
    "ordinal": "PrivateOrdinalRegression",
    "logistic": "PrivateLogisticRegression",
    "svc": "PrivateLinearSVC",
    "projected-logistic": "ProjectedClassifier",
}
AUTO = "auto"

#: Parameters that a study says elsewhere: in its budget, its ledger or its schema.
_ELSEWHERE = {
    "epsilon", "delta", "adjacency", "bounds", "classes", "ledger", "random_state", "verbose",
    "compressed",
}  # fmt: skip
_GUESSES = (
    "relevant", "signal", "design", "spread", "positives", "density", "correlation", "group",
    "alignment", "nonzeros", "repeats",
)  # fmt: skip


class Fields(fields.Fields):
    """Fields of a study file."""

    file = "study"


@dataclass(frozen=True)
class Study:
    """Everything that a fit needs beside the rows. All of it is public."""

    epsilon: float
    delta: float | None = None
    adjacency: str = "replace-one"
    schema: Schema | None = None
    estimator: str = AUTO
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Any] = field(default_factory=dict)
    expected: float | None = None
    row_length: float | None = None
    ledger: Mapping[str, Any] = field(default_factory=dict)
    data: Path | None = None
    out: Path | None = None
    checkpoint: Path | None = None
    seed: int | None = None
    guess: Mapping[str, Any] | None = None
    rows: int | None = None

    @property
    def kind(self) -> type:
        """The estimator's class."""
        name = self.estimator
        if name == AUTO:
            classes = self.schema is not None and self.schema.classes is not None
            name = "logistic" if classes else "lasso"
        kind: type = getattr(import_module("riata.estimators"), ESTIMATORS[name])
        return kind

    def model(
        self, *, for_source: bool, ledger: Ledger | None = None, verbose: bool = False
    ) -> Any:
        """The estimator, not fitted. Bounds and classes come from the schema, or from the source.

        Without a schema entries and targets reach 1: a forecast is in such units.
        """
        known = inspect.signature(self.kind).parameters
        arguments: dict[str, Any] = {
            "epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency,
            "ledger": ledger, "random_state": self.seed, "verbose": verbose,
        }  # fmt: skip
        if "bounds" in known and (self.row_length is not None or not for_source):
            arguments["bounds"] = self._bounds("classes" in known)
        if "classes" in known and not for_source:
            classes = None if self.schema is None else self.schema.classes
            arguments["classes"] = [0, 1] if classes is None else classes.tolist()
        arguments |= self._checked(known)
        if self.schema is not None and not for_source:  # a plan reads no names of columns
            from riata.fitting.unpenalized import unpenalized_columns

            given, size = arguments.get("unpenalized"), self.schema.n_features
            places = unpenalized_columns(given, size, None, self.schema)
            arguments["unpenalized"] = list(places) or None
        return self.kind(**arguments)

    def _bounds(self, classifies: bool) -> Bounds:
        from riata.bounds import Bounds

        bounds = Bounds(1.0, None if classifies else 1.0)
        bounds = bounds if self.schema is None else self.schema.bounds
        if self.row_length is None:
            return bounds
        return Bounds(self.row_length, bounds.y, norm="l2", nonnegative=bounds.nonnegative)

    def _checked(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters, each of which the estimator has."""
        table = Fields(self.parameters, "parameters")
        found = {}
        for name in known:
            if name not in _ELSEWHERE and (value := table.take(name, None)) is not None:
                found[name] = value
        table.end()
        return found

    def open_ledger(self) -> Ledger | None:
        if not self.ledger:
            return None
        from riata.privacy.ledger import Ledger

        where = dict(self.ledger)
        return Ledger.open(where.pop("path"), **where)


def load_study(path: Path | None, flags: Mapping[str, Any]) -> Study:
    """The study in a file, with what flags say in its place. Paths in a file are beside it."""
    table: dict[str, Any] = {}
    if path is not None:
        limit = ReadLimit(MAX_BYTES, InvalidArgument)
        table = parse_toml(path.read_bytes(), limit, f"The study {path}")
        if "features" in table:
            raise InvalidArgument(
                f"{path} is a schema, and not a study. Pass it with --schema, or write schema = "
                f'"{path.name}" into a study.'
            )
        _resolve_paths(table, path.parent)
    for name, value in flags.items():
        if isinstance(value, Mapping):
            inner = table.get(name, {})
            kept = dict(inner) if isinstance(inner, Mapping) else {}
            table[name] = kept | {key: each for key, each in value.items() if each is not None}
            if not table[name] and name not in ("budget", "parameters"):
                del table[name]
        elif value is not None:
            table[name] = value
    return _read(table)


def _resolve_paths(table: dict[str, Any], folder: Path) -> None:
    """Make the paths of a study file relative to its folder."""

    def moved(where: Any) -> Any:
        return str(folder / where) if isinstance(where, str) and "://" not in where else where

    for name in ("schema", "data", "out", "checkpoint"):
        if isinstance(table.get(name), str):
            table[name] = moved(table[name])
    ledger = table.get("ledger")
    if isinstance(ledger, str):
        table["ledger"] = {"path": moved(ledger)}
    elif isinstance(ledger, Mapping):
        places = {key: moved(ledger[key]) for key in ("path", "head") if key in ledger}
        table["ledger"] = dict(ledger) | places


def _read(table: Mapping[str, Any]) -> Study:
    entries = Fields(table)
    budget = entries.table("budget", {})
    epsilon = budget.take("epsilon", None)
    if epsilon is None:
        raise InvalidArgument(
            "There is no epsilon: it says how much privacy the fit may spend, and nobody else can "
            "choose it. Pass --epsilon, or write it under [budget] of the study."
        )
    study = Study(
        epsilon=epsilon,
        delta=budget.take("delta", None),
        adjacency=budget.take("adjacency", "replace-one"),
        schema=_schema(entries),
        estimator=entries.one_of("estimator", (AUTO, *ESTIMATORS), AUTO),
        parameters=entries.table("parameters", {}).rest(),
        grid=entries.table("grid", {}).rest(),
        expected=_optional(entries, "expected", entries.scale),
        row_length=_optional(entries, "row_length", entries.scale),
        ledger=_ledger(entries),
        data=_path(entries, "data"),
        out=_path(entries, "out"),
        checkpoint=_path(entries, "checkpoint"),
        seed=_optional(entries, "seed", entries.whole),
        **_guess(entries, "guess" in table),
    )
    budget.end()
    entries.end()
    if study.schema is not None and study.schema.fixes_size:
        from riata.fitting.arguments import check_blank_rows  # with scikit-learn: slow to import

        check_blank_rows(study.adjacency, study.schema)
    return study


def _optional(entries: Fields, name: str, read: Callable[[str], Any]) -> Any:
    return read(name) if name in entries else entries.take(name, None)


def _schema(entries: Fields) -> Schema | None:
    from riata.data import Schema

    given = entries.take("schema", None)
    if given is None:
        return None
    if isinstance(given, Mapping):
        return Schema.from_table(given)
    if not isinstance(given, str) or not given:
        raise entries.wrong("schema", given, "it must be a path, or a table with the schema itself")
    return Schema.load(given)


def _ledger(entries: Fields) -> dict[str, Any]:
    table = entries.take("ledger", None)
    if table is None:
        return {}
    if not isinstance(table, Mapping):
        raise entries.wrong("ledger", table, "it must be a path, or a table with path = ...")
    inner = Fields(table, "ledger")
    found = {"path": inner.text("path")}
    for name in ("dataset", "head"):
        if (value := inner.take(name, None)) is not None:
            found[name] = value
    inner.end()
    return found


def _guess(entries: Fields, given: bool) -> dict[str, Any]:
    """The guess, and the number of rows that it is about."""
    table = entries.table("guess", {})
    found = {name: value for name in _GUESSES if (value := table.take(name, None)) is not None}
    rows = table.whole("rows", 0, most=10**12)
    table.end()
    return {"guess": found if given else None, "rows": rows or None}


def _path(entries: Fields, name: str) -> Path | None:
    value = entries.take(name, None)
    if value is not None and (not isinstance(value, str) or not value):
        raise entries.wrong(name, value, "it must be a path")
    return None if value is None else Path(value)
