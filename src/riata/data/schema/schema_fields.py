"""The fields of a schema file."""

from __future__ import annotations

from typing import Any

from riata.data.columns import as_text
from riata.errors import SchemaError
from riata.files import fields


class SchemaFields(fields.Fields):
    """Fields of a schema: mistakes are told as `SchemaError`."""

    file = "schema"
    error = SchemaError

    def name(self, name: str) -> str:
        """The name of a column of the file."""
        value = self.text(name)
        if value != value.strip():
            raise self.wrong(name, value, "names of columns have no spaces around them")
        return value

    def names(self, name: str) -> tuple[str, ...]:
        """Different names of columns, or none."""
        return self.texts(name, [], "it must be a list of different names of columns")

    def labels(self, name: str) -> tuple[str, ...]:
        """Different texts; numbers are taken as texts."""
        return tuple(str(as_text(label)) for label in self._labels(name))

    def classes(self, name: str) -> tuple[Any, ...]:
        """At least two different labels of one type: texts, numbers or truth values."""
        labels = self._labels(name)
        if len(labels) < 2:
            raise self.wrong(name, list(labels), "it must be at least two labels")
        if len({float if type(label) is int else type(label) for label in labels}) > 1:
            raise self.wrong(name, list(labels), "all labels must have one type")
        return labels

    def _labels(self, name: str) -> tuple[Any, ...]:
        value = self.take(name)
        if not isinstance(value, list | tuple) or not value:
            raise self.wrong(name, value, "it must be a list of labels, at least one")
        for label in value:
            if isinstance(label, str):
                good = fields.is_text(label) and label and label == label.strip()
            else:
                good = isinstance(label, int | float) and abs(label) <= fields.LARGEST
            if not good:
                why = "a label is text without spaces around it, a number, true or false"
                raise self.wrong(name, label, why)
        if len({as_text(label) for label in value}) != len(value):
            raise self.wrong(name, list(value), "a label stands twice in it")
        return tuple(value)
