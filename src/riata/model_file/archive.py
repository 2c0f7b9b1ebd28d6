"""The container: a zip archive without compression, and how a file is refused."""

from __future__ import annotations

import io
import zipfile

from riata.errors import ModelFileError

#: More members than any model has.
_MOST_MEMBERS = 64

_DAMAGED = "It is not a model file, or it is cut off or damaged. Copy it again."


def require(condition: object, otherwise: str) -> None:
    """Refuse the file unless the condition holds, with the reason as a sentence or two."""
    if not condition:
        raise ModelFileError(otherwise)


def require_small(size: int, max_bytes: int, claim: str) -> None:
    """Refuse what is larger than the reader allows, where `claim` is such as "It is larger"."""
    trust = "If you trust it, pass a larger max_bytes."
    require(size <= max_bytes, f"{claim} than max_bytes={max_bytes}. {trust}")


def pack(members: dict[str, bytes]) -> bytes:
    """An archive without a clock, so that equal members give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, content)
    return out.getvalue()


def unpack(content: bytes) -> dict[str, bytes]:
    """The members of an archive, together no larger than the archive, whoever made it.

    By itself `zipfile` would find an archive anywhere in a file, and list any number of members.
    """
    require(content.startswith(b"PK\x03\x04") and content[-22:-18] == b"PK\x05\x06", _DAMAGED)
    few = content.count(b"PK\x01\x02") <= _MOST_MEMBERS  # what each entry of the list begins with
    require(few, "Its members are more than any model has.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            listed = archive.infolist()
            _check(listed, len(content))
            return {info.filename: archive.read(info) for info in listed}
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, ValueError) as problem:
        raise ModelFileError(_DAMAGED) from problem


def _check(listed: list[zipfile.ZipInfo], size: int) -> None:
    names = {info.filename for info in listed}
    require(len(names) == len(listed), "Two of its members have the same name.")
    for info in listed:
        stored = info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size
        require(stored, f"Its member {info.filename!r} is compressed, and riata never does that.")
    require(any(info.header_offset == 0 for info in listed), _DAMAGED)  # nothing comes before
    require(sum(info.file_size for info in listed) <= size, _DAMAGED)  # nothing is used twice
