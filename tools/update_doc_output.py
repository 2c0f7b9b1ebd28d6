"""Write what the Python blocks of a page print into the ```text blocks that follow them at once.

    python tools/update_doc_output.py docs/start.md docs/results.md

An empty block is filled. A line `...` in a block stands for lines that are left out: as many lines
before and after it stay as there were. A ```toml block that begins with a comment `# name.toml` is
a file for the blocks of its page. tests/conformance/test_documentation.py compares every block of
output with what is printed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from riata.mechanisms import noise

#: A block of code and, if it follows at once, the block with what it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```toml\n# ([\w-]+\.toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DIGEST = re.compile(r"\b(?=\w*[a-f])[0-9a-f]{16,}\b")
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
LEFT_OUT = "..."


@contextlib.contextmanager
def fixed_noise() -> Iterator[None]:
    """Keys of noise from a counter, and not from the system: for the made-up rows of pages."""
    calls = itertools.count()

    def urandom(n: int) -> bytes:
        return hashlib.shake_256(f"page, key {next(calls)}".encode()).digest(n)

    with mock.patch.object(noise, "os", SimpleNamespace(urandom=urandom)):
        yield


def outputs(page: Path) -> list[tuple[str, str | None, str]]:
    """Each block of a page, what the page says that it prints, and what it prints."""
    text = page.read_text(encoding="utf-8")
    for name, content in FILE.findall(text):
        Path(name).write_text(content, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    found = []
    with fixed_noise():
        blocks = ((match[1], match[2]) for match in BLOCK.finditer(text))
        for number, (code, shown) in enumerate(blocks, start=1):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)
            found.append((code, shown, tidy(printed.getvalue())))
    return found


def tidy(text: str) -> str:
    """Without spaces at the ends of lines, and without empty lines around it."""
    text = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
    return text + "\n" if text else ""


def shortened(printed: str, shown: str) -> str:
    """What is printed, without the lines that the page leaves out."""
    lines, kept = printed.splitlines(), shown.splitlines()
    if LEFT_OUT not in kept:
        return printed
    before = kept.index(LEFT_OUT)
    after = len(kept) - before - 1
    return "\n".join([*lines[:before], LEFT_OUT, *lines[len(lines) - after :]]) + "\n"


def agree(one: str, other: str) -> bool:
    """Whether words are the same and numbers nearly: other processors round otherwise."""
    one, other = (DIGEST.sub("digest", text) for text in (one, other))
    words = [" ".join(NUMBER.sub("#", text).split()) for text in (one, other)]
    numbers = zip(NUMBER.findall(one), NUMBER.findall(other), strict=False)
    return words[0] == words[1] and all(_near(*pair) for pair in numbers)


def _near(one: str, other: str) -> bool:
    """Within 2%, and one in the last digit that is shown."""
    digits = re.sub(r"e.*", "", one).partition(".")[2]
    exponent = int(one.partition("e")[2] or 0)
    a, b = (float(text.replace(",", "")) for text in (one, other))
    return abs(a - b) <= 0.02 * abs(a) + 1.001 * 10.0 ** (exponent - len(digits))


def written(page: Path) -> str:
    """The text of a page with its blocks of output made anew, where they are wrong."""
    runs = iter(outputs(page))

    def block(match: re.Match[str]) -> str:
        code, shown, printed = next(runs)
        if shown is None:
            return match[0]
        now = shortened(printed, shown)
        return f"```python\n{code}```\n\n```text\n{shown if agree(shown, now) else now}```"

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


def main() -> None:
    for name in sys.argv[1:]:
        page, here = Path(name).resolve(), Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                text = written(page)
            finally:
                os.chdir(here)
        page.write_text(text, encoding="utf-8")
        print(f"{name}: written")


if __name__ == "__main__":
    main()
