"""The fields of a task file."""

from __future__ import annotations

import datetime

from riata.errors import TaskError
from riata.files import fields


class TaskFields(fields.Fields):
    """Fields of a task file. Mistakes raise `TaskError`."""

    file = "task file"
    error = TaskError

    def day(self, name: str) -> str:
        """A day in the form of ISO 8601, or "" if there is none."""
        value = self.take(name, "")
        text = value.isoformat() if isinstance(value, datetime.date) else value
        try:
            good = text == "" or datetime.date.fromisoformat(text).isoformat() == text
        except (TypeError, ValueError):
            good = False
        if not good:
            raise self.wrong(name, value, "it must be a day like 2027-01-31")
        return str(text)
