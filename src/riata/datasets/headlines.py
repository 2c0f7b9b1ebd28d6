"""Headlines, clickbait or not."""

from __future__ import annotations

import gzip
from importlib.resources import files
from typing import NamedTuple

import numpy as np


class Headlines(NamedTuple):
    """What `load_headlines` returns."""

    texts: list[str]
    clickbait: np.ndarray


def load_headlines() -> Headlines:
    """12,000 headlines in English, about half of them clickbait.

    Returns
    -------
    texts : list of str
    clickbait : ndarray of bool, of shape (12000,)

    Notes
    -----
    A random part of the 32,000 headlines of Chakraborty, Paranjape, Kakarla and Ganguly (2016),
    *Stop Clickbait: detecting and preventing clickbaits in online news media*, under the MIT
    licence, which lies beside the file. The privacy unit is one headline.
    """
    packed = (files("riata.datasets") / "headlines.txt.gz").read_bytes()
    lines = gzip.decompress(packed).decode("utf-8").splitlines()
    labels, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return Headlines(list(texts), np.array(labels) == "1")
