"""The container: a zip archive without compression, and how a file is refused."""

from __future__ import annotations

import io
import zipfile

from riata.errors import ModelFileError


def require(condition: object, otherwise: str) -> None:
    """Refuse the file unless the condition holds, with the reason as a sentence or two."""
    if not condition:
        raise ModelFileError(otherwise)


def pack(members: dict[str, bytes]) -> bytes:
    """An archive without a clock, so that equal members give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, content)
    return out.getvalue()
