"""Databases whose statements and commits fail, each in turn: SQLite and PostgreSQL."""

import itertools

import sqlalchemy as sa

from riata.collect.sql import DatabaseStore

from store_faults import FAULTS, TASK, Story, after_faults


class FailingStatements:
    """Fails the k-th statement or commit of an engine; a commit before it is done or after."""

    def __init__(self, engine, k, after):
        self.left, self.after, self.failed, self.armed = k, after, 0, True
        sa.event.listen(engine, "before_cursor_execute", self._statement)
        real = engine.dialect.do_commit

        def commit(connection):
            if not self._now():
                return real(connection)
            if self.after:  # as when the connection breaks before the answer
                real(connection)
            raise self._problem()

        engine.dialect.do_commit = commit

    def _now(self):
        now = self.armed and self.left == 0
        self.left -= self.armed
        self.failed += now
        return now

    def _problem(self):
        return sa.exc.OperationalError("the connection broke", None, Exception("the server"))

    def _statement(self, *arguments):
        if self._now():
            raise self._problem()


def every_statement(new_place, with_tokens):
    """Fail statement or commit 0, 1, 2, ... of a story until none is left; say how many failed."""
    total = 0
    for after in (False, True):
        for k in itertools.count():
            place, story = new_place(), Story(with_tokens)
            store = DatabaseStore(place, TASK)
            faults = FailingStatements(store._engine, k, after)
            try:
                story.tell(store, people=2)
            except FAULTS:
                raise AssertionError("an error that nobody expects") from None
            faults.armed = False
            if faults.failed and after:
                # The reports of a commit whose answer was lost are kept and counted.
                held = {seed for _, seed in story.accepted | story.open}
                assert len(story.reports()) <= len(store) <= len(held)
            else:
                assert len(store) == len(story.reports())
            after_faults(place, store, story, exact=not after)
            if not faults.failed:
                break
            total += 1
    return total
