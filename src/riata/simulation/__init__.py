"""Made-up rows that follow a public guess, for forecasts. No private row is ever near."""

from riata.simulation.columns import SimulatedColumns
from riata.simulation.engine import SimulatedEngine
from riata.simulation.guess import DESIGNS, Guess
from riata.simulation.partial_guess import PartialGuess
from riata.simulation.world import Score, World

__all__ = [
    "DESIGNS",
    "Guess",
    "PartialGuess",
    "Score",
    "SimulatedColumns",
    "SimulatedEngine",
    "World",
]
