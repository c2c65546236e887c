"""Statements that ask or order something: EXPLAIN, DESCRIBE, SHOW and STOP JOB."""

from collections.abc import Callable

from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.syntax import Describe, Explain, JobStatement, Show, StopJob
from service.sql.text.errors import suggestion

_LISTS = ("TABLES", "VIEWS", "FUNCTIONS", "JOBS")
_SHOWN = (*_LISTS, "CREATE TABLE name", "CREATE VIEW name")
_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")


class QuestionParser:
    """Reads a question from a cursor; `job` reads what EXPLAIN explains."""

    def __init__(self, cursor: TokenCursor, job: Callable[[], JobStatement]) -> None:
        self._cursor = cursor
        self._job = job

    def explain(self) -> Explain:
        """Read EXPLAIN [PLAN FOR] statement."""
        cursor = self._cursor
        at = cursor.advance().start
        for word in _DETAILS:
            if cursor.at_words(word):
                raise cursor.script.error(
                    cursor.at, f"EXPLAIN {word} is not supported", hint="Write EXPLAIN statement."
                )
        cursor.accept_words("PLAN", "FOR")
        return Explain(self._job(), at)

    def describe(self) -> Describe:
        """Read DESCRIBE or DESC of a table or view."""
        cursor = self._cursor
        at = cursor.advance().start
        name = cursor.table_name("the name of a table or view", hint="Write DESCRIBE name.")
        return Describe(name, at)

    def show(self) -> Show:
        """Read SHOW of a list, or of a CREATE statement."""
        cursor = self._cursor
        at = cursor.advance().start
        for word in _LISTS:
            if cursor.accept_words(word):
                return Show(word, at)
        for word in ("TABLE", "VIEW"):
            if cursor.accept_words("CREATE", word):
                form = f"Write SHOW CREATE {word} name."
                name = cursor.table_name(f"a {word.lower()} name", hint=form)
                return Show(word, at, name)
        known = "Write SHOW " + ", SHOW ".join(_SHOWN) + "."
        raise cursor.unexpected(
            "what to show", hint=suggestion(cursor.token.text[:40], _LISTS, known)
        )

    def stop(self) -> StopJob:
        """Read STOP JOB 'id'."""
        cursor = self._cursor
        at = cursor.advance().start
        form = "Write STOP JOB 'id'; SHOW JOBS lists the ids."
        cursor.expect_words("JOB", hint=form)
        job_id = cursor.string("the job's id in single quotes", hint=form)
        if cursor.at_words("WITH"):
            what = cursor.ahead(1).text.upper()[:40]
            raise cursor.script.error(
                cursor.at,
                f"STOP JOB … WITH {what} is not supported",
                hint="Write STOP JOB 'id': a job always stops behind a whole batch and keeps its "
                "place, from which it can be started again.",
            )
        return StopJob(job_id.text, at)
