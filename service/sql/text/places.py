"""Where in a script something is that was found wrong outside: a topic, a database, a column."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from joins.plan.errors import SinkError, SourceError
from service.sql.text.dialect import SqlToken, SqlTokenKind, tokenize
from service.sql.text.errors import SqlError
from service.sql.text.script import Script


@contextmanager
def told_where(sql: str, *tables: str) -> Iterator[None]:
    """Give an error about what `tables` name its line and column, as errors of the script have.

    Args:
        sql: the script.
        tables: their names in CREATE TABLE; of one that names nothing of the error, the first.

    Raises:
        JoinError: what is raised within, of the same class, with `line`, `column` and `excerpt`.
    """
    try:
        yield
    except (SourceError, SinkError) as error:
        script = Script(sql)
        at = _place(script, tables, error.message)
        if at is not None:
            line, column = script.line_and_column(at)
            error.message = f"line {line}, column {column}: {error.message}"
            error.args = (error.message,)
            vars(error).update(line=line, column=column, excerpt=script.excerpt(at))
        raise


def _place(script: Script, tables: Sequence[str], message: str) -> int | None:
    """The place of what `message` quotes in a declaration, else of the first declaration."""
    try:
        tokens = tokenize(script)
    except SqlError:
        return None
    declared = [own for own in (_declaration(tokens, table) for table in tables) if own]
    places = [place for own in declared if (place := _quoted_in(own, message)) is not None]
    return min(places, default=(0, declared[0][0].start) if declared else (0, None))[1]


def _quoted_in(tokens: Sequence[SqlToken], message: str) -> tuple[int, int] | None:
    """(where the message quotes it, where it is) of the first thing of a declaration."""
    values = [token for token in tokens if token.kind is SqlTokenKind.STRING]
    names = [
        token for token in tokens[1:] if token.kind in (SqlTokenKind.WORD, SqlTokenKind.QUOTED_NAME)
    ]
    places = [
        (place, token)
        for token in (*values, *names)
        if (place := _quoted(token, message)) is not None
    ]
    first = min(places, key=lambda pair: pair[0], default=None)
    return None if first is None else (first[0], first[1].start)


def _declaration(tokens: Sequence[SqlToken], table: str) -> Sequence[SqlToken]:
    """From the name of the table to the end of its last CREATE TABLE; empty without one."""
    texts = [token.text.upper() for token in tokens]
    for at in range(len(tokens) - 1, 0, -1):
        before = texts[max(0, at - 6) : at]
        if tokens[at].text == table and before[-1] in ("TABLE", "EXISTS") and "CREATE" in before:
            end = texts.index(";", at) if ";" in texts[at:] else len(tokens)
            return tokens[at:end]
    return ()


def _quoted(token: SqlToken, message: str) -> int | None:
    ends = (message.find(f'{start}{token.text}"') for start in ('"', ".", "/") if token.text)
    return min((at for at in ends if at >= 0), default=None)
