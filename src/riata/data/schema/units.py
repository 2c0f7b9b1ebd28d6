"""From encoded columns back to the units of a file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from riata.data.schema.features import Choice
from riata.data.schema.numeric_block import NumericBlock
from riata.data.schema.schema import Schema


def original_units(schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """How many units of the file an encoded 1 stands for, and which value became 0, by column.

    1 and 0 for columns that are no numbers of the file: choices, flags, words. A step of an ordered
    choice is encoded as less than 1, and its unit is the whole step.
    """
    if isinstance(schema.features, NumericBlock):
        block = schema.features
        return np.full(block.count, block.bound), np.zeros(block.count)
    scales, centres = [], []
    for feature in schema.features:
        scale, centre = 1.0, 0.0
        if feature.kind == "number" and feature.n_columns == 1:
            line: Any = feature  # the one kind that is a line through its numbers
            scale, centre = line.reach, line.center
        scales.append(np.full(feature.n_columns, scale))
        if isinstance(feature, Choice) and feature.ordered:
            steps = len(feature.choices) - 1
            scales[-1][:steps] = math.sqrt(steps)
        centres.append(np.full(feature.n_columns, centre))
    return np.concatenate(scales), np.concatenate(centres)
