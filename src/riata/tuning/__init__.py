"""Search for parameters with one privacy budget for all that is tried."""

from riata.tuning.planning import SearchPlan
from riata.tuning.search import PrivateSearch

__all__ = ["PrivateSearch", "SearchPlan"]
