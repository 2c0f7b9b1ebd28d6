"""Audits: check a guarantee instead of believing it.

`replay` runs a fit on one data set and shows how much of the claimed privacy loss a given neighbour
realises, exactly. `lower_bound` runs many fits on both and bounds epsilon from below by what the
releases give away. `worst_pair` makes the neighbours that change the first release most, and
`search_pair` looks for those that change a whole fit most. `on_release` and `scores` are for other
people's tools: every release as a record, and scores of many fits for any judge.
"""

from riata.audit.attack_scores import AttackScores, scores
from riata.audit.black_box import Curve, epsilon_lower_bound, lower_bound
from riata.audit.grey_box import Replay, ReplayedRelease, replay, replays
from riata.audit.pair_search import SearchedPair, search_pair
from riata.audit.pairs import Neighbours, random_pairs, worst_pair
from riata.releases import Described, Release, on_release

__all__ = [
    "AttackScores",
    "Curve",
    "Described",
    "Neighbours",
    "Release",
    "Replay",
    "ReplayedRelease",
    "SearchedPair",
    "epsilon_lower_bound",
    "lower_bound",
    "on_release",
    "random_pairs",
    "replay",
    "replays",
    "scores",
    "search_pair",
    "worst_pair",
]
