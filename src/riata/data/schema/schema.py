"""The public file that says what a row is, before any row is seen."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.data.columns import Texts
from riata.data.schema.automatic import declares, with_knots
from riata.data.schema.column_names import MOST_NAMES, check_names
from riata.data.schema.kinds import read_features
from riata.data.schema.named_features import NamedFeatures
from riata.data.schema.numeric_block import NumericBlock, read_numeric_block
from riata.data.schema.schema_fields import SchemaFields
from riata.data.schema.target import Target, read_target
from riata.errors import SchemaError
from riata.files.fields import TABLE_BYTES, size_of
from riata.files.limit import MAX_BYTES, ReadLimit
from riata.files.text import parse_toml, read_bytes
from riata.grid import MOST_ROWS
from riata.wording import number_of

#: How many rows one person may count as.
MOST_ROWS_OF_A_PERSON = 10_000

#: Rows count as sparse if this many times their likely entries are no more than their columns.
_FULL_ROWS = 4


@dataclass(frozen=True)
class Schema:
    """What each column of a data set is, from public knowledge alone.

    Make one with `Schema.load`, `Schema.read` or `Schema.from_table`, which check every field and
    take no more memory than `max_bytes`.

    Attributes
    ----------
    features : NamedFeatures or NumericBlock
        The columns that rows are made of, in order; or a block of numeric columns without names.
    target : Target or None
        What is to be predicted.
    person : str
        The column that says whose row it is, or "".
    rows_of_a_person : int
        As how many rows each person counts.
    people : int or None
        How many people there are; counted in the file if it is not given. Public.
    rows : int or None
        How many rows there are; counted in the file if it is not given. Public.
    ignore : tuple of str
        Columns of the file that are not used.
    ignore_others : bool
        Whether all columns that the schema does not name are ignored.
    separator : str
        Between the fields of a CSV file.
    unpenalized : tuple of str
        Features that are always in a model, and that nothing pulls to 0.

    Examples
    --------
    >>> from riata.data import Schema
    >>> schema = Schema.from_table({
    ...     "features": [
    ...         {"name": "age", "kind": "number", "bounds": [0, 120]},
    ...         {"name": "ward", "kind": "choice", "choices": ["north", "south"]},
    ...     ],
    ...     "target": {"name": "days", "bounds": [0, 14]},
    ... })
    >>> schema.feature_names
    ['age', 'ward=north', 'ward=south', 'ward=(other)']
    >>> schema.bounds
    Bounds(x=1.0, y=7.0, norm='inf')
    """

    features: NamedFeatures | NumericBlock
    target: Target | None = None
    person: str = ""
    rows_of_a_person: int = 1
    people: int | None = None
    rows: int | None = None
    ignore: tuple[str, ...] = ()
    ignore_others: bool = False
    separator: str = ","
    unpenalized: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: str | Path, *, max_bytes: int = MAX_BYTES) -> Schema:
        """Read a schema file (TOML), whoever made it, in at most `max_bytes` of memory."""
        limit = ReadLimit(max_bytes, SchemaError)
        text = read_bytes(path, limit, "the schema")
        return cls._from_table(parse_toml(text, limit, f"The schema {path}"), limit)

    @classmethod
    def read(cls, text: bytes | str, *, max_bytes: int = MAX_BYTES) -> Schema:
        """Read the text of a schema file."""
        return cls.read_within(text, ReadLimit(max_bytes, SchemaError))

    @classmethod
    def read_within(cls, text: bytes | str, limit: ReadLimit) -> Schema:
        """Read the text of a schema that is a part of something larger."""
        return cls._from_table(parse_toml(text, limit, "The schema"), limit)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, max_bytes: int = MAX_BYTES) -> Schema:
        """Check a table of fields, such as a dict."""
        return cls._from_table(table, ReadLimit(max_bytes, SchemaError))

    @classmethod
    def _from_table(cls, table: Mapping[str, Any], limit: ReadLimit) -> Schema:
        fields = SchemaFields(table)
        unnamed = isinstance(table.get("features"), Mapping)
        features: NamedFeatures | NumericBlock
        if unnamed:
            features = read_numeric_block(fields.table("features"))
        else:
            limit.take(TABLE_BYTES * size_of(table, "features"), "The features of the schema")
            features = NamedFeatures(read_features(fields.tables("features")))
        target = fields.take("target", None)
        person = "" if "person" not in table else fields.name("person")
        if unnamed and person:
            why = "files without named columns have no column for it; name the features"
            raise fields.wrong("person", person, why)
        made = cls(
            features,
            None
            if target is None
            else read_target(SchemaFields(target, "target"), not unnamed, limit),
            person,
            _of_people(fields, person, "rows_of_a_person", 1, MOST_ROWS_OF_A_PERSON),
            _of_people(fields, person, "people", None, MOST_ROWS),
            _count(fields, "rows", MOST_ROWS),
            fields.names("ignore"),
            fields.flag("ignore_others", default=False),
            fields.one_of("separator", (",", ";", "\t", "|"), default=","),
            () if unnamed else fields.names("unpenalized"),
        )
        fields.end()
        for name in made.unpenalized:
            if name not in made.columns_of_features:
                why = "it must name features of the schema"
                raise fields.wrong("unpenalized", name, why, made.columns_of_features)
        if person and made.rows is not None:
            why = "with a person column the number of people decides; say people = ... instead"
            raise fields.wrong("rows", made.rows, why)
        check_names(made, limit)
        return made

    def save(self, path: str | Path) -> None:
        """Write the schema with comments. `load` reads it again."""
        Path(path).write_text(self.toml(), encoding="utf-8")

    def table(self) -> dict[str, Any]:
        """All fields of the schema, which `from_table` reads again."""
        return tomllib.loads(self.toml())

    def toml(self) -> str:
        """The text of the schema file, with a comment for each line."""
        from riata.data.schema.toml_text import schema_text

        return schema_text(self)

    @property
    def fixes_size(self) -> bool:
        """Whether it says how many rows or people there are: blank rows stand for the others."""
        return self.rows is not None or self.people is not None

    @property
    def unnamed(self) -> bool:
        """Whether files of this schema have no named columns."""
        return isinstance(self.features, NumericBlock)

    @property
    def columns(self) -> list[str]:
        """The columns of a file that are read, without the target and the person."""
        return self.features.columns

    @cached_property
    def feature_names(self) -> list[str]:
        """A name for each encoded column."""
        if self.n_features > MOST_NAMES:
            raise SchemaError(
                f"The schema has {self.n_features} encoded columns, and a list of their names "
                f"holds at most {MOST_NAMES}. Use fewer buckets."
            )
        return self.features.names

    @property
    def likely_entries(self) -> int:
        """About how many entries of an encoded row are not 0: a guess from public facts."""
        return self.features.likely_entries

    @cached_property
    def n_features(self) -> int:
        """The number of encoded columns."""
        return self.features.count

    @property
    def bounds(self) -> Bounds:
        """The promise that every encoded row keeps."""
        half = None if self.target is None else self.target.half
        promise = Bounds(x=1.0, y=half, nonnegative=self.features.nonnegative)
        if self.unnamed or _FULL_ROWS * self.likely_entries > self.n_features:
            return promise
        assert isinstance(self.features, NamedFeatures)
        length = math.sqrt(self.features.squared_length) * (1 + 2.0**-10)  # and rounding a little
        return replace(promise, length=length, nonzeros=self.likely_entries)

    @property
    def groups(self) -> list[np.ndarray]:
        """The encoded columns of each feature, for sets and losses that know groups."""
        sizes = [1] * self.n_features
        if isinstance(self.features, NamedFeatures):
            sizes = [feature.n_columns for feature in self.features]
        return np.split(np.arange(self.n_features), np.cumsum(sizes)[:-1])

    @property
    def columns_of_features(self) -> dict[str, list[int]]:
        """The encoded columns of each feature, by its name."""
        if isinstance(self.features, NumericBlock):
            return {}
        names = [feature.name for feature in self.features]
        return {name: at.tolist() for name, at in zip(names, self.groups, strict=True)}

    def for_fit(self, n_rows: int, epsilon: float) -> Schema:
        """The schema with knots for numbers where a fit of so many rows has them by default.

        Numbers whose `knots` or `bins` are given stay as they are. The rule is public: see
        `riata.data.schema.automatic`.
        """
        if isinstance(self.features, NumericBlock):
            return self
        models = 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)
        amount = n_rows * epsilon / self.rows_of_a_person
        made = self.with_features(with_knots(self.features, amount, models))
        try:
            check_names(made, ReadLimit(MAX_BYTES, SchemaError))
        except SchemaError:  # a knot would be called as another column is
            return self
        return made

    @property
    def derived(self) -> list[tuple[str, str]]:
        """What a fit knows from the schema alone, in words: a name for each line, and the line."""
        from riata.data.schema.derived import derived_facts

        return derived_facts(self)

    def with_features(self, features: NamedFeatures | NumericBlock) -> Schema:
        """The same schema with other features of the same columns."""
        return self if features is self.features else replace(self, features=features)

    def declares(self, made: Schema) -> bool:
        """Whether a model with the schema `made` reads the rows of this schema."""
        if self.target != made.target:
            return False
        if isinstance(self.features, NamedFeatures) and isinstance(made.features, NamedFeatures):
            return declares(self.features, made.features)
        return self.features == made.features

    @property
    def classes(self) -> np.ndarray | None:
        """The classes of the target in the order of their codes; None for numbers."""
        return None if self.target is None else self.target.classes

    @property
    def target_centre(self) -> float:
        """What is added to the intercept after a fit: targets are centred before it."""
        return 0.0 if self.target is None else self.target.centre

    def blank(self, n_rows: int) -> tuple[sparse.csr_array, np.ndarray | None]:
        """Rows in which everything is missing, and their targets."""
        missing = Texts.blank(n_rows)
        y = None if self.target is None else self.target.encode(missing)
        return self.features.blank(n_rows), y

    def __repr__(self) -> str:
        predicts = "" if self.target is None else f", target {self.target.name or 'y'!r}"
        return f"<Schema of {number_of(self.n_features, 'column')}{predicts}>"


def _count(fields: SchemaFields, name: str, most: int) -> int | None:
    value = fields.take(name, None)
    return None if value is None else SchemaFields({name: value}).whole(name, least=1, most=most)


def _of_people(fields: SchemaFields, person: str, name: str, default: Any, most: int) -> Any:
    """A field that goes with a person column, and with nothing else."""
    value = _count(fields, name, most)
    if value is not None and not person:
        raise fields.wrong(name, value, "the schema names no person column; add person = ...")
    if value is None and person and name == "rows_of_a_person":
        raise fields.error(
            "The field rows_of_a_person is missing: each person counts as so many rows, and noise "
            "grows with it. Choose it from public knowledge and add it to the schema."
        )
    return default if value is None else value
