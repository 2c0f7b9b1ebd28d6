"""Good files with random changes: they are read, or refused with the documented error, in bounds.

Every file is read in a process with hard limits, see readers.py.
"""

import re
import struct
import zlib

import pytest
from examples import opened
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from readers import READERS

from riata.model_file.archive import pack

LIMIT = 4 * 2**20
#: What a hostile writer would put somewhere.
WORDS = [
    b"[", b"]", b"{", b"}", b'"', b"'", b",", b".", b"=", b"\n", b"\x00", b"\xff", b"-", b"1e999",
    b"NaN", b"null", b"true", b'"""', b"'''", b"a.", b"[[a]]\n", b'{"range":[0,1000000000000,1]}',
    b"\\ud800", b"\\u0000", "\U0001f600".encode(), b"PK\x01\x02", b"PK\x05\x06", b"PK\x03\x04",
    b"\x93NUMPY", b"|O", b"<U99999999", b"(1000000000000,)", b"0x" + b"f" * 50, b"9" * 400,
]  # fmt: skip
NUMBERS = [0, -1, 1, 2**31, 2**32 - 1, 10**9, 10**18, 2**63, 10**30, 10**400]


def at(content, share):
    return int(share * len(content))


def flip(content, a, b, pick):
    changed = bytearray(content or b"\0")
    changed[min(at(content, a), len(changed) - 1)] ^= 1 << (pick % 8)
    return bytes(changed)


def cut(content, a, b, pick):
    low, high = sorted((at(content, a), at(content, b)))
    return content[:low] + content[high:]


def repeat(content, a, b, pick):
    """Some of it again and again."""
    low, high = sorted((at(content, a), at(content, b)))
    part = content[low : min(high, low + 2000)]
    times = 2 ** (pick % 12)
    return content[:low] + part * min(times, 2**19 // max(len(part), 1)) + content[low:]


def insert(content, a, b, pick):
    """A word, perhaps many times."""
    place, times = at(content, a), 1 if b < 0.7 else int(b * 50_000)
    return content[:place] + WORDS[pick % len(WORDS)] * times + content[place:]


def number(content, a, b, pick):
    """Another number in the place of one."""
    found = list(re.finditer(rb"[0-9]+", content))
    if not found:
        return content
    one = found[min(int(a * len(found)), len(found) - 1)]
    return (
        content[: one.start()] + str(NUMBERS[pick % len(NUMBERS)]).encode() + content[one.end() :]
    )


def word(content, a, b, pick):
    """A long text in the place of a quoted one."""
    found = list(re.finditer(rb'"[^"]*"', content))
    if not found:
        return content
    one = found[min(int(a * len(found)), len(found) - 1)]
    return content[: one.start()] + b'"' + b"x" * int(b * 300_000) + b'"' + content[one.end() :]


def field(content, a, b, pick):
    """Four bytes of a binary file that are a large number."""
    place = at(content, a)
    return content[:place] + struct.pack("<L", (2**31 << (pick % 2)) - 1) + content[place + 4 :]


CHANGES = st.lists(
    st.tuples(
        st.sampled_from([flip, cut, repeat, insert, number, word, field]),
        st.floats(0, 1),
        st.floats(0, 1),
        st.integers(0, 255),
    ),
    min_size=1,
    max_size=4,
)


def changed(path, member, changes):
    """The bytes of a file with changes: in one of its members, or in the archive itself."""
    archive = path.suffix in (".riata", ".npz")
    content = path.read_bytes()
    members = opened(path) if archive else {}
    names = [*members]
    place = member % (len(names) + 1)
    target = members[names[place]] if archive and place < len(names) else content
    for change, a, b, pick in changes:
        target = change(target, a, b, pick)
    if archive and place < len(names):
        return pack({**members, names[place]: target})
    return target


def check(good, reads, folder, reader, name, member, changes):
    form = READERS[reader][2]
    path = good[form][sorted(good[form])[name % len(good[form])]]
    content = changed(path, member, changes)
    spoilt = folder / f"spoilt{path.suffix}"
    spoilt.write_bytes(content)
    reads(reader, spoilt, LIMIT)


#: The tables of these two are in memory before riata sees them; test_text_bombs.py has their cases.
FUZZED = [reader for reader in READERS if not reader.endswith("from_table")]


def fuzzed(examples):
    """A test of so many random files, the same in every run."""

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(FUZZED), st.integers(0, 99), st.integers(0, 99), CHANGES)
    def run(good, reads, tmp_path_factory, reader, name, member, changes):
        check(good, reads, tmp_path_factory.getbasetemp(), reader, name, member, changes)

    return run


test_a_changed_file_is_read_or_refused = fuzzed(300)
test_many_changed_files_are_read_or_refused = pytest.mark.slow(fuzzed(10_000))


def test_the_changes_reach_the_readers(good):
    """A change inside a member leaves a sound archive: it is not refused for its checksum alone."""
    path = good["model"]["lasso"]
    content = changed(path, 0, [(number, 0.5, 0.0, 5)])
    assert content != path.read_bytes()
    assert zlib.crc32(content) != zlib.crc32(path.read_bytes())
