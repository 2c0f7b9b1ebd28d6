"""Mechanisms: what turns a query into a release."""

from riata.mechanisms.additive import Additive, Exact, GaussianMechanism, LaplaceMechanism
from riata.mechanisms.base import Mechanism
from riata.mechanisms.compiled_selection import CompiledSelections
from riata.mechanisms.engine import CompiledPath, Engine, Scores
from riata.mechanisms.objective import (
    GammaObjective,
    GaussianObjective,
    ObjectivePerturbation,
)
from riata.mechanisms.peeling import Peeling
from riata.mechanisms.posterior import PosteriorSample
from riata.mechanisms.public import PublicAnswer
from riata.mechanisms.sampled import SampledGaussianMechanism
from riata.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    Selection,
    TopK,
)

__all__ = [
    "Additive",
    "CompiledPath",
    "CompiledSelections",
    "Engine",
    "Exact",
    "ExponentialMechanism",
    "GammaObjective",
    "GaussianMechanism",
    "GaussianObjective",
    "LaplaceMechanism",
    "Mechanism",
    "ObjectivePerturbation",
    "Peeling",
    "PermuteAndFlip",
    "PosteriorSample",
    "PublicAnswer",
    "ReportNoisyMax",
    "SampledGaussianMechanism",
    "Scores",
    "Selection",
    "TopK",
]
