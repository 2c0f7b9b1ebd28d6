"""How much memory the reading of one file may take, whoever made the file."""

from __future__ import annotations

from typing import Any

from riata.arguments import is_whole
from riata.errors import InvalidArgument, RiataError

#: What a file may take unless the caller says otherwise.
MAX_BYTES = 2**30


class ReadLimit:
    """The memory that is left for one file and for all that is built from it.

    A few bytes can describe an array, or a schema, of any size. So whatever a reader is about to
    make it asks for here first. What it frees again is not given back: the limit holds for all of
    it together, and with it for the time that reading takes. `error` is raised when `max_bytes` are
    not enough, or when the file is not what it should be.
    """

    def __init__(self, max_bytes: Any, error: type[RiataError]) -> None:
        if not is_whole(max_bytes) or max_bytes < 0:
            raise InvalidArgument(
                f"max_bytes={max_bytes!r} must be a whole number of bytes, at least 0: it is the "
                "most memory that the file may take. Pass one, such as 2**30."
            )
        self.max_bytes, self.error = int(max_bytes), error
        self.left = self.max_bytes

    def take(self, n_bytes: int, what: str) -> None:
        """Reserve memory, before it is used, or raise. `what` is such as "Its 5 coefficients"."""
        if n_bytes > self.left:
            raise self.error(
                f"{what} would take more than max_bytes={self.max_bytes} allows for the whole of "
                "it. If you trust where it comes from, pass a larger max_bytes."
            )
        self.left -= n_bytes

    def require(self, condition: object, otherwise: str) -> None:
        """Refuse the file unless the condition holds, with the reason as a sentence or two."""
        if not condition:
            raise self.error(otherwise)
