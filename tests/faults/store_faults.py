"""People who send to a store while its writes fail, and what must be true of it then.

Run as a program under `failing_calls.c`, it fails each call in turn, in each way, and prints how
many faults there were.
"""

import ctypes
import errno
import itertools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import sqlalchemy.exc

from riata.collect import segments
from riata.collect.stores import open_store, records_at
from riata.errors import CollectError
from riata.local import Task

TASK = Task.from_table(
    {
        "kind": "mean",
        "epsilon": 1.0,
        "features": [{"name": "hours", "kind": "number", "bounds": [0, 24]}],
    }
)
FAULTS = (OSError, sqlalchemy.exc.DBAPIError, CollectError)
#: Error, how many calls fail one after another, whether half of a write is done.
WAYS = [
    (errno.ENOSPC, 1, False),
    (errno.EIO, 1, False),
    (errno.ENOSPC, 1, True),
    (errno.EIO, 2, False),
    (errno.ENOSPC, 3, True),
    (errno.ENOSPC, 10**6, False),
]
#: So small that a new file begins now and then.
SEGMENT_BYTES = 70
#: In memory where that can be: thousands of files are made durable.
FOLDERS = "/dev/shm" if os.path.isdir("/dev/shm") else None


def words(*numbers):
    return np.array(numbers, dtype=np.uint64)


def spread(number):
    return number * 0x9E3779B97F4A7C15 % 2**64


class Story:
    """What was sent to a store, and what it answered."""

    def __init__(self, with_tokens):
        self.with_tokens = with_tokens
        self.accepted, self.open = set(), set()

    def send(self, store, *pairs):
        """Pairs of a token and a report in one call. What fails leaves open what is kept."""
        tokens, seeds = (words(*column) for column in zip(*pairs, strict=True))
        try:
            found = store.add(seeds, tokens if self.with_tokens else None)
        except FAULTS:
            self.open.update(pairs)
        else:
            for pair, good in zip(pairs, found.tolist(), strict=True):
                if good:
                    self.accepted.add(pair)

    def tell(self, store, people=6):
        """Some people, each with other reports for the same token, and a batch."""
        for token in range(people):
            for report in (0, 1, 0, 2):
                self.send(store, (spread(token), spread(100 + 10 * token + report)))
        more = range(people - 1, people + 3)
        self.send(store, *((spread(t), spread(100 + 10 * t)) for t in more))
        for token in more:
            self.send(store, (spread(token), spread(101 + 10 * token)))

    def reports(self):
        return {seed for _, seed in self.accepted}

    def check(self, stored, exact):
        """Stored pairs: all that were accepted, one for a token, and none that was refused."""
        assert self.accepted <= stored, "an accepted report is lost"
        assert stored <= self.accepted | self.open, "a refused report is kept"
        if exact:
            assert stored == self.accepted, "a report is kept whose sender heard of an error"
        if self.with_tokens:
            assert len({token for token, _ in stored}) == len(stored), "a token counts twice"
            assert len({token for token, _ in self.accepted}) == len(self.accepted)


def stored(place, story):
    """The pairs in a store; without tokens, those that were sent with the reports in it."""
    found = records_at(str(place), TASK)
    seeds = found.seeds.tolist()
    assert len(seeds) == len(set(seeds)), "a report counts twice"
    if story.with_tokens:
        assert len(found.reports) == 0
        return set(zip(found.tokens.tolist(), found.paired.tolist(), strict=True))
    assert len(found.tokens) == 0
    return {pair for pair in story.accepted | story.open if pair[1] in seeds}


def after_faults(place, store, story, exact):
    """Check a store whose faults are over, as it is and when it is opened again."""
    if store is None:
        open_store(str(place), TASK).close()  # what failed was the beginning
    else:
        assert len(store) == len(story.reports()) or not exact
        store.probe()  # all is well again
        if exact and story.with_tokens:  # who heard of an error can send with the same token
            waiting = dict(story.open)
            for token in waiting.keys() - {token for token, _ in story.accepted}:
                story.send(store, (token, waiting[token]))
                assert (token, waiting[token]) in story.accepted, "a token was used for nothing"
        before = len(store)
        store.close()
        assert before == len({seed for _, seed in stored(place, story)})
    found = stored(place, story)
    story.check(found, exact)
    again = open_store(str(place), TASK)
    assert len(again) == len({seed for _, seed in found})
    if found:  # retries change nothing, and no token is good for another report
        tokens, seeds = (words(*column) for column in zip(*found, strict=True))
        assert again.add(seeds, tokens if story.with_tokens else None).all()
        if story.with_tokens:
            assert not again.add(~seeds, tokens).any(), "a used token is accepted again"
        assert len(again) == len(seeds)
    # who heard of an error sends the same bytes again, and hears whether they count
    late = Story(story.with_tokens)
    for pair in sorted(story.open - found):
        late.send(again, pair)
    assert not late.open
    again.close()
    final = stored(place, story)
    assert final == found | late.accepted
    story.accepted |= late.accepted | found
    story.check(final, exact=True)


def place_of(kind, folder):
    return folder / "store" if kind == "directory" else f"sqlite:///{folder}/reports.db"


def every_call(kind, with_tokens, way, calls, people=6):
    """Fail call 0, 1, 2, ... of one story until none is left to fail; say how many failed."""
    number, several, half = way
    for k in itertools.count():
        folder = Path(tempfile.mkdtemp(dir=FOLDERS))
        try:
            place, story, store = place_of(kind, folder), Story(with_tokens), None
            calls.arm(k, number, several, int(half))
            try:
                store = open_store(str(place), TASK)
                story.tell(store, people)
            except FAULTS:
                assert store is None
            failed = calls.disarm()
            if not failed:
                after_faults(place, store, story, exact=True)
                assert len(story.accepted) == (people + 3 if with_tokens else 3 * people + 6)
                return k
            # After one fault the file is put right at once. Where faults go on, one write may stay
            # that was not acknowledged; SQLite decides by its journal what it keeps.
            exact = kind == "directory" and several == 1
            after_faults(place, store, story, exact)
        finally:
            shutil.rmtree(folder)


def main():
    """Arguments: the library, the kind of store, and `short` for fewer people and ways."""
    segments.SEGMENT_BYTES = SEGMENT_BYTES
    library, kind, short = ctypes.CDLL(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["short"]
    for with_tokens in (True,) if short else (True, False):
        for way in WAYS[:1] + WAYS[-1:] if short else WAYS:
            faults = every_call(kind, with_tokens, way, library, people=1 if short else 6)
            print(kind, with_tokens, os.strerror(way[0]), *way[1:], faults, flush=True)


if __name__ == "__main__":
    main()
