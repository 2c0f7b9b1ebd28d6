"""How well a fitted model does: on public rows exactly, on private ones for a budget."""

from riata.evaluation.excess_risk import excess_risk
from riata.evaluation.private import PlannedScore, PrivateScore, plan_score, private_score
from riata.evaluation.public import Evaluation, evaluate

__all__ = [
    "Evaluation",
    "PlannedScore",
    "PrivateScore",
    "evaluate",
    "excess_risk",
    "plan_score",
    "private_score",
]
