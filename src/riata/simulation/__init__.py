"""Made-up rows that follow a public guess, for forecasts. No private row is ever near."""

from riata.simulation.columns import Columns
from riata.simulation.engine import SimulatedEngine
from riata.simulation.guess import DESIGNS, Guess
from riata.simulation.world import Score, World

__all__ = ["DESIGNS", "Columns", "Guess", "Score", "SimulatedEngine", "World"]
