"""The fields of a task file."""

from __future__ import annotations

from riata.errors import TaskError
from riata.files import fields
from riata.files.fields import LARGEST, SMALLEST

__all__ = ["LARGEST", "SMALLEST", "Fields"]


class Fields(fields.Fields):
    """Fields of a task file: mistakes are told as `TaskError`."""

    file = "task file"
    error = TaskError
