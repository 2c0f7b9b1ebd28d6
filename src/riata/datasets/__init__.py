"""Data that ships with the package, for examples and the demo."""

from riata.datasets.flights import Flights, load_flights

__all__ = ["Flights", "load_flights"]
