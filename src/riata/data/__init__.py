"""Readers: from what users have to rows."""

from riata.data.arrays import labels_as_codes, rows_and_targets

__all__ = ["labels_as_codes", "rows_and_targets"]
