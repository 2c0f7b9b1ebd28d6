"""Mechanisms: what turns a query into a release."""

from riata.mechanisms.additive import Additive, Exact, GaussianMechanism, LaplaceMechanism
from riata.mechanisms.base import Engine, Mechanism
from riata.mechanisms.compiled_selection import CompiledSelections
from riata.mechanisms.objective import (
    GammaObjective,
    GaussianObjective,
    ObjectivePerturbation,
)
from riata.mechanisms.peeling import Peeling
from riata.mechanisms.posterior import PosteriorSample
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
    "ReportNoisyMax",
    "SampledGaussianMechanism",
    "Selection",
    "TopK",
]
