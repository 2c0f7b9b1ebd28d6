"""Engines: where the rows are and how queries are summed over them."""

from riata.engines.local import LocalEngine

__all__ = ["LocalEngine"]
