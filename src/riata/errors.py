"""What can go wrong, by kind.

Every message says what is wrong, which value, why it matters and what to do. No message ever
contains a value read from the rows.
"""


class RiataError(Exception):
    """Base of every error that riata raises on purpose."""


class InvalidArgument(RiataError, ValueError):
    """An argument is unusable. Raised before a row is read and before anything is charged."""


class Incompatible(InvalidArgument):
    """Two valid pieces that do not fit together.

    Parameters
    ----------
    this, that : str
        The two pieces, as the user named them.
    because : str
        The reason, as the end of the sentence "This is because ...".
    instead : str
        What to do, as an imperative sentence without its full stop.
    """

    def __init__(self, this: str, that: str, *, because: str, instead: str) -> None:
        self.parts = (this, that, because, instead)
        super().__init__(f"Cannot use {this} with {that}. This is because {because}. {instead}.")

    def __reduce__(self) -> tuple[object, ...]:
        this, that, because, instead = self.parts
        return (_incompatible, (this, that, because, instead))


def _incompatible(this: str, that: str, because: str, instead: str) -> Incompatible:
    return Incompatible(this, that, because=because, instead=instead)


class BudgetExceeded(RiataError):
    """A plan costs more than is left, or a release is outside the plan that was paid for."""


class UnsupportedEvent(RiataError):
    """An accountant met an event whose cost it cannot bound."""


class LedgerError(RiataError):
    """The ledger cannot be used: missing, unreadable, or in a place where it cannot be trusted."""


class ModelFileError(RiataError):
    """A model file cannot be written or read: missing, damaged, or not made by `riata.save`."""


class TaskError(InvalidArgument):
    """A task file of the local model is unusable. Raised before anything is collected."""


class SchemaError(InvalidArgument):
    """A schema is unusable. Raised before a row is read and before anything is charged."""


class DataError(RiataError):
    """A file or a frame is missing, damaged, or not what the schema says. Quotes no cell of it."""


class AlreadyAnswered(RiataError):
    """A device was asked more often than the task's contribution cap allows."""


class CollectError(RiataError):
    """A collector cannot do its work: its directory, its database or its configuration."""


class ClusterError(RiataError, RuntimeError):
    """Workers cannot keep or sum their rows, or answer what cannot be right. Quotes no row."""


class ClusterLost(ClusterError):
    """The workers that hold the rows cannot be reached."""


class CheckpointError(RiataError):
    """A checkpoint cannot be used: damaged, of another run, in use, or on a full disk."""


class InternalError(RiataError):
    """A check of riata's own code failed. Says nothing about the rows."""


class DiskFull(RiataError, OSError):
    """Rows that do not fit into memory do not fit on the disk either."""


class PrivacyWarning(UserWarning):
    """Something beside a fit may reveal rows, and no budget pays for it. Says nothing of a row."""


class DataQualityWarning(UserWarning):
    """What private counts say about missing and impossible cells. They were paid for."""
