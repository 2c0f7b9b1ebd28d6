"""Fitted models as files that hold data and no code.

A model file is a zip archive of `model.json` and one `.npy` member for each array. Nothing in it
names a function, a module or a member: objects are written by the names in `values.CLASSES`, and
the member of an array is named after the place of the array in the model, so a reader knows every
name before it looks. Members are not compressed, so a file never unpacks to more than its size, and
whatever is built from them asks a `ReadLimit` first.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import BinaryIO

from riata.errors import InvalidArgument, ModelFileError
from riata.files import durable
from riata.files.archive import Archive
from riata.files.limit import MAX_BYTES, ReadLimit
from riata.model_file.archive import pack, require
from riata.model_file.model import Model, build, describe

__all__ = ["load", "save"]

#: More members than any model has.
_MOST_MEMBERS = 64

#: Characters of another error that an error quotes.
_QUOTED = 500


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, replacing the file if there is one.

    Equal models give equal bytes. The file appears complete or not at all.

    Parameters
    ----------
    model : fitted estimator or LocalModel
        Any estimator of riata, a pipeline of `SchemaEncoder` and one, or what
        `riata.local.Aggregator.solve` learned. Its ledger is not saved, since a model file is not a
        way to spend; neither is the state of a `random_state` that is a generator. Both are None in
        the loaded model, and the Statement still says whether the noise was seeded.
    path : path-like

    Notes
    -----
    *Privacy.* The file holds the parameters, which are public, and what the fit released. It holds
    no row.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import riata
    >>> bounds = riata.Bounds(x=1.0, y=1.0)
    >>> model = riata.PrivateLasso(epsilon=1.0, delta=1e-6, bounds=bounds)
    >>> model = model.fit(np.zeros((1000, 3)), np.zeros(1000))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     riata.save(model, Path(folder) / "model.riata")
    ...     again = riata.load(Path(folder) / "model.riata")
    >>> again.privacy_ == model.privacy_
    True
    """
    content = pack(describe(model))
    try:
        _read(io.BytesIO(content), sys.maxsize)
    except ModelFileError as problem:  # such as a parameter that was changed after the fit
        raise InvalidArgument(
            f"The model cannot be saved, because the file could not be loaded again: {problem}"
        ) from problem
    try:
        with durable.replacing(path) as file:
            file.write(content)
    except OSError as problem:
        raise ModelFileError(
            f"Cannot write {path}: {problem.strerror or problem}. Nothing was saved there."
        ) from problem


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Model:
    """Read a model that `save` wrote. Runs no code from the file, whoever made it.

    Parameters
    ----------
    path : path-like
    max_bytes : int, default=2**30
        The most memory that all of the model, and the reading of it, may take. Few bytes can
        describe many columns, so a file from a stranger could otherwise fill the memory.

    Returns
    -------
    fitted estimator or LocalModel
        What was saved, without a ledger.

    Notes
    -----
    The Statement is a claim by whoever wrote the file, not a certificate.
    """
    path = Path(path)
    try:
        require(path.is_file(), "There is no file at this path. Check it.")
        with path.open("rb") as stream:
            return _read(stream, max_bytes)
    except OSError as problem:
        raise ModelFileError(f"Cannot read {path}: {problem.strerror or problem}.") from problem
    except ModelFileError as problem:
        raise ModelFileError(f"Cannot load a model from {path}: {problem}") from problem.__cause__


def _read(stream: BinaryIO, max_bytes: int) -> Model:
    """The model in a file. Whatever goes wrong, the file is at fault."""
    limit = ReadLimit(max_bytes, ModelFileError)
    try:
        return build(Archive(stream, limit, "a model file", _MOST_MEMBERS), limit)
    except (ModelFileError, MemoryError):
        raise
    except Exception as problem:
        why = f"{problem}"[:_QUOTED]
        raise ModelFileError(f"A value in it does not fit its place ({why}).") from problem
