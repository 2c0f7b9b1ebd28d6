"""Data that ships with the package, for examples and the demo."""

from riata.datasets.flights import Flights, load_flights
from riata.datasets.headlines import Headlines, load_headlines

__all__ = ["Flights", "Headlines", "load_flights", "load_headlines"]
