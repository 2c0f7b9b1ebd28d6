"""From a request to a fitted model: plan, charge, read, run, state the guarantee.

A `Request` says everything public that decides what a fit releases. `plan` fixes steps, noise and
cost from it, and reads nothing. `run` charges the plan, and only then reads the rows. Estimators,
searches, forecasts, audits, reports, model files and the command line all go this way.
"""

from riata.fitting.extra_releases import ExtraReleases, release_score
from riata.fitting.peeling import Peeled, peel
from riata.fitting.planning import PlannedFit, plan
from riata.fitting.request import WITHOUT_EFFECT, AutomaticRadius, Request, search_digest
from riata.fitting.running import Fitted, run, solve

__all__ = [
    "WITHOUT_EFFECT",
    "AutomaticRadius",
    "ExtraReleases",
    "Fitted",
    "Peeled",
    "PlannedFit",
    "Request",
    "peel",
    "plan",
    "release_score",
    "run",
    "search_digest",
    "solve",
]
