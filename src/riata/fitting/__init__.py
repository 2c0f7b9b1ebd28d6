"""What stands between an estimator and the rows: which run it is."""

from riata.fitting.request import WITHOUT_EFFECT, Request, facts_of_search

__all__ = ["WITHOUT_EFFECT", "Request", "facts_of_search"]
