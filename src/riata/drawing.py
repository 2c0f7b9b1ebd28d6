"""Plots inside HTML pages."""

from __future__ import annotations

import io
from typing import Any


def inline_svg(figure: Any) -> str:
    """A matplotlib figure as an SVG element that needs nothing else."""
    drawing = io.StringIO()
    figure.savefig(drawing, format="svg", metadata={"Date": None})
    text = drawing.getvalue()
    return text[text.index("<svg") :]
