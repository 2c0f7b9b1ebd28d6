"""What riata is made of, each piece declared once: losses, sets, solvers, projections.

A class is registered by its place in the `__all__` of its package. From there it is known by name,
can be saved in model files, and is part of every matrix of the tests, which also hold that the API
pages list it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from inspect import isabstract
from typing import Any, Generic, TypeVar

Kind = TypeVar("Kind")


class Registry(Mapping[str, type[Kind]], Generic[Kind]):
    """The concrete classes of one kind that a package exports, by the names of the classes.

    Parameters
    ----------
    base : type
        What all of them are.
    package : str
        The name of a module whose `__all__` is complete.
    """

    def __init__(self, base: type[Any], package: str) -> None:
        module = sys.modules[package]
        exported = [getattr(module, name) for name in module.__all__ if hasattr(module, name)]
        self._classes = {
            each.__name__: each
            for each in exported
            if isinstance(each, type) and issubclass(each, base) and not isabstract(each)
        }

    def __getitem__(self, name: str) -> type[Kind]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def examples(self, *size: int) -> list[Kind]:
        """Objects of each class, for the matrices of the tests."""
        classes: Any = self._classes.values()
        return [example for each in classes for example in each.examples(*size)]

    def complete(self, listed: list[Any], *size: int) -> list[Kind]:
        """The list, and after it examples of the classes that it lacks."""
        known = {type(each) for each in listed}
        return listed + [each for each in self.examples(*size) if type(each) not in known]
