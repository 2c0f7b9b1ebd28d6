"""The chain: what it accepts, what it refuses, and how its head is kept."""

import itertools
import json
import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riata.errors import LedgerError
from riata.privacy.ledger.hash_chain import (
    Head,
    is_genuine,
    link_path,
    linked_to,
    new_head,
    next_head,
    skip_link,
    verify,
)
from riata.privacy.ledger.head import HeadFile

HEADER = ("claims", 1, 2_000_000_000, "1e-06", "replace-one")


def chain(*texts):
    """A head after some entries, the header and the entries."""
    head = new_head("claims", HEADER)
    header, entries, macs = (HEADER, head.mac), [], {0: head.mac}
    for seq, text in enumerate(texts, start=1):
        fields = (seq, text)
        head = next_head(head, macs, fields)
        macs[seq] = head.mac
        entries.append((fields, head.mac))
    return head, header, entries


def macs_of(header, entries):
    return {0: header[1]} | {fields[0]: mac for fields, mac in entries}


def test_a_chain_verifies_from_every_head_that_it_went_through():
    head, header, entries = chain("a", "b", "c")
    older = [Head("claims", head.key, 0, header[1])]
    older += [Head("claims", head.key, fields[0], mac) for fields, mac in entries]
    assert [verify(seen, header, entries, "x") for seen in older] == [head] * 4


def test_every_chain_has_a_key_of_its_own():
    assert chain()[0].key != chain()[0].key
    assert len(chain()[0].key) == 32


def test_the_key_is_not_shown():
    head = chain("a")[0]
    assert head.key.hex() not in repr(head)
    assert repr(head.key) not in repr(head)


@settings(deadline=None)
@given(st.data())
def test_no_other_sequence_of_its_lines_verifies(data):
    head, header, entries = chain("a", "b", "c", "d")
    others = st.lists(st.sampled_from(entries), max_size=6).filter(lambda found: found != entries)
    with pytest.raises(LedgerError):
        verify(head, header, data.draw(others), "x")


@settings(deadline=None)
@given(st.integers(0, 3), st.one_of(st.text(), st.integers(), st.binary(), st.floats(), st.none()))
def test_no_other_value_verifies(at, value):
    texts = ["1", "2", "3", "4"]
    head, header, entries = chain(*texts)
    if value == texts[at]:
        return
    entries[at] = ((at + 1, value), entries[at][1])
    with pytest.raises(LedgerError):
        verify(head, header, entries, "x")


@pytest.mark.parametrize("other", ["1", 1.0, True, b"1", None])
def test_a_number_of_another_type_does_not_verify(other):
    head, header, entries = chain("a")
    with pytest.raises(LedgerError):
        verify(head, header, [((other, "a"), entries[0][1])], "x")


def test_fields_cannot_run_into_each_other():
    head = new_head("claims", HEADER)
    macs = {0: head.mac}

    def mac(*fields):
        return next_head(head, macs, fields).mac

    assert mac("ab", "c") != mac("a", "bc")
    assert mac('a","b') != mac("a", "b")
    assert mac("None") != mac(None)


def test_lines_made_with_another_key_are_refused():
    head, header, entries = chain("a", "b")
    forged = next_head(replace(head, key=os.urandom(32)), macs_of(header, entries), (3, "c"))
    with pytest.raises(LedgerError, match="Entry 3"):
        verify(head, header, [*entries, ((3, "c"), forged.mac)], "x")


# the last entries alone


def tail(header, entries, start):
    """The entries from a number on, and the macs of those before them that they need."""
    macs = macs_of(header, entries)
    before = {seq: macs[seq] for seq in linked_to(range(start, len(entries) + 1)) if seq < start}
    return entries[start - 1 :], before


@pytest.mark.parametrize("start", range(1, 21))
def test_the_last_lines_verify_with_a_few_macs(start):
    head, header, entries = chain(*map(str, range(20)))
    last, before = tail(header, entries, start)
    for seen in range(start - 1, 21):
        older = Head("claims", head.key, seen, macs_of(header, entries)[seen])
        assert verify(older, header, last, "x", start=start, before=before) == head
    assert len(before) <= 6


@settings(deadline=None)
@given(st.integers(2, 20), st.data())
def test_an_edit_of_the_last_lines_or_of_a_mac_that_they_need_does_not_verify(start, data):
    head, header, entries = chain(*map(str, range(20)))
    last, before = tail(header, entries, start)
    if data.draw(st.booleans()):
        at = data.draw(st.sampled_from(sorted(set(before) - {0}) or [start - 1]))
        before[at] = data.draw(st.one_of(st.none(), st.text(), st.just("0" * 64)))
    else:
        at = data.draw(st.integers(0, len(last) - 1))
        (seq, _), mac = last[at]
        last = [*last[:at], ((seq, "edited"), mac), *last[at + 1 :]]
    with pytest.raises(LedgerError, match="was edited"):
        verify(head, header, last, "x", start=start, before=before)


def test_last_lines_that_the_head_has_seen_beyond_are_refused():
    head, header, entries = chain(*map(str, range(20)))
    for kept in range(10, 20):
        last, before = tail(header, entries[:kept], 10)
        with pytest.raises(LedgerError, match=f"rolled back: it has {kept} entries"):
            verify(head, header, last, "x", start=10, before=before)


# links that skip entries


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_few_links_lead_from_any_line_to_any_earlier_one(one, other):
    first, last = sorted((one, other))
    entries = list(link_path(last, first))
    assert (entries[0], entries[-1]) == (last, first)
    for above, below in itertools.pairwise(entries):
        assert below in (above - 1, skip_link(above))
    assert len(entries) <= 1 + last.bit_length() ** 2


def test_every_line_on_the_way_is_genuine_and_no_other_is():
    head, header, entries = chain(*map(str, range(40)))
    macs = macs_of(header, entries)
    for target in (1, 7, 8, 31, 32, 33, 40):
        for seq in link_path(40, target):
            fields, mac = entries[seq - 1]
            assert is_genuine(head.key, macs, seq, (fields, mac))
            assert not is_genuine(head.key, macs, seq, ((seq, "other"), mac))
            assert not is_genuine(head.key, macs, seq + 1, (fields, mac))
            for link in {seq - 1, skip_link(seq)}:
                assert not is_genuine(head.key, {**macs, link: "0" * 64}, seq, (fields, mac))
                assert not is_genuine(head.key, {**macs, link: None}, seq, (fields, mac))


def test_a_header_is_no_line_and_a_line_no_header():
    head = new_head("claims", ("a" * 64, 1, "x"))
    macs = {0: "riata ledger"}
    assert not is_genuine(head.key, macs, 1, ((1, "x"), head.mac))


# the head file


def test_a_head_file_keeps_what_it_was_given(tmp_path):
    head, header, entries = chain("a")
    file = HeadFile(tmp_path / "head")
    file.create(head)
    assert file.read() == head
    after = next_head(head, macs_of(header, entries), (2, "b"))
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
