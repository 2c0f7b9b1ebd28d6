"""The chain: what it accepts, what it refuses, and how its head is kept."""

import json
import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riata.errors import LedgerError
from riata.privacy.chain import Head, HeadFile, following, new_head, verify

HEADER = ("claims", 1, 2_000_000_000, "1e-06", "replace-one")


def chain(*texts):
    """A head after some lines, the header and the lines."""
    head = new_head("claims", HEADER)
    header, lines = (HEADER, head.mac), []
    for seq, text in enumerate(texts, start=1):
        fields = (seq, text)
        head = following(head, fields)
        lines.append((fields, head.mac))
    return head, header, lines


def test_a_chain_verifies_from_every_head_that_it_went_through():
    head, header, lines = chain("a", "b", "c")
    older = [Head("claims", head.key, 0, header[1])]
    older += [Head("claims", head.key, fields[0], mac) for fields, mac in lines]
    assert [verify(seen, header, lines, "x") for seen in older] == [head] * 4


def test_every_chain_has_a_key_of_its_own():
    assert chain()[0].key != chain()[0].key
    assert len(chain()[0].key) == 32


def test_the_key_is_not_shown():
    head = chain("a")[0]
    assert head.key.hex() not in repr(head)
    assert repr(head.key) not in repr(head)


@given(st.data())
def test_no_other_sequence_of_its_lines_verifies(data):
    head, header, lines = chain("a", "b", "c", "d")
    others = st.lists(st.sampled_from(lines), max_size=6).filter(lambda found: found != lines)
    with pytest.raises(LedgerError):
        verify(head, header, data.draw(others), "x")


@given(st.integers(0, 3), st.one_of(st.text(), st.integers(), st.binary(), st.floats(), st.none()))
def test_no_other_value_verifies(at, value):
    texts = ["1", "2", "3", "4"]
    head, header, lines = chain(*texts)
    if value == texts[at]:
        return
    lines[at] = ((at + 1, value), lines[at][1])
    with pytest.raises(LedgerError):
        verify(head, header, lines, "x")


@pytest.mark.parametrize("other", ["1", 1.0, True, b"1", None])
def test_a_number_of_another_type_does_not_verify(other):
    head, header, lines = chain("a")
    with pytest.raises(LedgerError):
        verify(head, header, [((other, "a"), lines[0][1])], "x")


def test_fields_cannot_run_into_each_other():
    head = new_head("claims", HEADER)
    assert following(head, ("ab", "c")).mac != following(head, ("a", "bc")).mac
    assert following(head, ('a","b',)).mac != following(head, ("a", "b")).mac


def test_lines_made_with_another_key_are_refused():
    head, header, lines = chain("a", "b")
    forged = following(replace(head, key=os.urandom(32)), (3, "c"))
    with pytest.raises(LedgerError, match="Charge 3"):
        verify(head, header, [*lines, ((3, "c"), forged.mac)], "x")


def test_a_head_file_keeps_what_it_was_given(tmp_path):
    head = chain("a")[0]
    file = HeadFile(tmp_path / "head")
    file.create(head)
    assert file.read() == head
    after = following(head, (2, "b"))
    file.write(after)
    assert file.read() == after
    assert os.listdir(tmp_path) == ["head"]
    assert (tmp_path / "head").stat().st_mode & 0o077 == 0


def test_a_head_file_never_replaces_another_when_it_is_created(tmp_path):
    (tmp_path / "head").write_text("mine")
    with pytest.raises(LedgerError, match="exists"):
        HeadFile(tmp_path / "head").create(chain()[0])
    assert (tmp_path / "head").read_text() == "mine"
    with pytest.raises(LedgerError, match="cannot be created"):
        HeadFile(tmp_path / "missing" / "head").create(chain()[0])


def test_a_link_to_a_head_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    HeadFile(tmp_path / "disk" / "head").create(chain()[0])
    (tmp_path / "head").symlink_to(tmp_path / "disk" / "head")
    after = chain("a")[0]
    HeadFile(tmp_path / "head").write(after)
    assert (tmp_path / "head").is_symlink()
    assert HeadFile(tmp_path / "disk" / "head").read() == after


def test_what_a_process_left_when_it_died_is_in_nobodys_way(tmp_path):
    file = HeadFile(tmp_path / "head")
    file.create(chain()[0])
    (tmp_path / "head.new").write_text("half a hea")
    after = chain("a")[0]
    file.write(after)
    assert file.read() == after
    assert os.listdir(tmp_path) == ["head"]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"dataset": 1},
        {"seq": -1},
        {"seq": True},
        {"seq": "0"},
        {"key": "00"},
        {"key": None},
        {"mac": "00"},
        {"mac": 7},
    ],
)
def test_a_head_with_an_impossible_field_is_refused(tmp_path, change):
    file = HeadFile(tmp_path / "head")
    file.create(chain()[0])
    content = json.loads((tmp_path / "head").read_text()) | change
    (tmp_path / "head").write_text(json.dumps(content))
    with pytest.raises(LedgerError, match="is not the head of a ledger"):
        file.read()
