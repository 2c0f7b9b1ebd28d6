"""Readers: from what users have to rows."""

from riata.data.arrays import labels_as_codes, rows_and_targets
from riata.data.encoder import SchemaEncoder
from riata.data.formats import read
from riata.data.schema import Schema
from riata.data.source import Source

__all__ = ["Schema", "SchemaEncoder", "Source", "labels_as_codes", "read", "rows_and_targets"]
