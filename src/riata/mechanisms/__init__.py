"""Mechanisms: what turns a query into a release."""

from riata.mechanisms.additive import Exact, GaussianMechanism, LaplaceMechanism
from riata.mechanisms.base import Engine, Mechanism
from riata.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    Selection,
    TopK,
)

__all__ = [
    "Engine",
    "Exact",
    "ExponentialMechanism",
    "GaussianMechanism",
    "LaplaceMechanism",
    "Mechanism",
    "PermuteAndFlip",
    "ReportNoisyMax",
    "Selection",
    "TopK",
]
