"""Statements of a script."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NoReturn

from service.sql.grammar.cursor import (
    TokenCursor,
    read_hint,
    read_names,
    read_options,
    read_setting,
    read_string,
    read_table,
)
from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.expression_parser import ExpressionParser
from service.sql.grammar.query_parser import QueryParser
from service.sql.grammar.syntax import (
    CreateTable,
    CreateTableAs,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    JobStatement,
    Namespace,
    OptionNode,
    Reset,
    Select,
    SetOption,
    Show,
    ShowSettings,
    Statement,
    StatementSet,
    StopJob,
    WithoutEffect,
)
from service.sql.grammar.table_parser import TableParser
from service.sql.text.dialect import SqlToken, SqlTokenKind, groups, tokenize
from service.sql.text.script import OUTSIDE, Edit, Script, SqlError, suggestion

_PROMPT = re.compile(r"Flink SQL\s*>[^\S\n]*", re.IGNORECASE)
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
        cursor = self._cursor
        at = cursor.advance().start
        name = read_table(cursor, "the name of a table or view", hint="Write DESCRIBE name.")
        return Describe(name, at)

    def show(self) -> Show:
        cursor = self._cursor
        at = cursor.advance().start
        for word in _LISTS:
            if cursor.accept_words(word):
                return Show(word, at)
        for word in ("TABLE", "VIEW"):
            if cursor.accept_words("CREATE", word):
                form = f"Write SHOW CREATE {word} name."
                name = read_table(cursor, f"a {word.lower()} name", hint=form)
                return Show(word, at, name)
        known = "Write SHOW " + ", SHOW ".join(_SHOWN) + "."
        raise cursor.unexpected(
            "what to show", hint=suggestion(cursor.token.text[:40], _LISTS, known)
        )

    def stop(self) -> StopJob:
        cursor = self._cursor
        at = cursor.advance().start
        form = "Write STOP JOB 'id'; SHOW JOBS lists the ids."
        cursor.expect_words("JOB", hint=form)
        job_id = read_string(cursor, "the job's id in single quotes", hint=form)
        if cursor.at_words("WITH"):
            what = cursor.ahead(1).text.upper()[:40]
            raise cursor.script.error(
                cursor.at,
                f"STOP JOB … WITH {what} is not supported",
                hint="Write STOP JOB 'id': a job always stops after a complete batch and can be "
                "restarted from there.",
            )
        return StopJob(job_id.text, at)


_KINDS = ("CATALOG", "DATABASE")
_USE_FORM = "Write USE database, or USE CATALOG catalog."


class NamespaceParser:
    """Reads USE, and CREATE or DROP of a catalog or database, from a cursor."""

    def __init__(self, cursor: TokenCursor) -> None:
        self._cursor = cursor

    def is_named(self) -> bool:
        return any(map(self._cursor.at_words, _KINDS))

    def use(self) -> Namespace:
        cursor = self._cursor
        at = cursor.advance().start
        what = "CATALOG" if cursor.accept_words("CATALOG") else "DATABASE"
        return Namespace("USE", what, self._name(what, _USE_FORM), False, (), at)

    def create(self, at: int) -> Namespace:
        cursor = self._cursor
        what = cursor.advance().text.upper()
        form = f"Write CREATE {what} name."
        if_exists = cursor.accept_words("IF", "NOT", "EXISTS")
        name = self._name(what, form)
        if cursor.accept_words("COMMENT"):
            read_string(cursor, "a comment in single quotes", hint="Write COMMENT 'text'.")
        options: tuple[OptionNode, ...] = ()
        if cursor.accept_words("WITH"):
            options = read_options(cursor, f"Write CREATE {what} name WITH ('key' = 'value').")
        return Namespace("CREATE", what, name, if_exists, options, at)

    def drop(self, at: int) -> Namespace:
        cursor = self._cursor
        what = cursor.advance().text.upper()
        if_exists = cursor.accept_words("IF", "EXISTS")
        name = self._name(what, f"Write DROP {what} [IF EXISTS] name.")
        if not cursor.accept_words("CASCADE"):
            cursor.accept_words("RESTRICT")
        return Namespace("DROP", what, name, if_exists, (), at)

    def _name(self, what: str, form: str) -> Name:
        cursor = self._cursor
        word = f"the name of a {what.lower()}"
        if what == "CATALOG":
            return cursor.name(word, hint=form)
        name = read_table(cursor, word, hint=form)
        if len(name.qualifier) > 1:
            raise cursor.script.error(name.at, f"{word} has more than two parts", hint=form)
        return name


_WITHOUT_EFFECT: dict[str, str] = {
    "ADD JAR": "connectors are built in, and code cannot be added to a job",
    "REMOVE JAR": "code cannot be added to a job",
    "LOAD MODULE": "functions and connectors are built in",
    "UNLOAD MODULE": "functions and connectors are built in",
    "USE MODULES": "functions and connectors are built in",
    "CREATE FUNCTION": "code cannot be added to a job, so a query that calls it is refused",
    "DROP FUNCTION": "code cannot be added to a job",
    "ANALYZE TABLE": "the plan of a job does not depend on statistics",
}
"""Statements that no job needs: why each is accepted and left out."""
_OTHER_STATEMENTS: dict[str, str] = {
    "ALTER": "Change the CREATE TABLE statement itself.",
    "UPDATE": "A job inserts only; change the table in its own database.",
    "DELETE": "A job inserts only; change the table in its own database.",
    "MERGE": "A job inserts only; change the table in its own database.",
    "ADD": "Code and files cannot be added to a job.",
    "LOAD": "Code and files cannot be added to a job.",
    "CALL": "Procedures cannot be called from a script.",
}
_OTHER_CREATES: dict[str, str] = {
    "MODEL": "Models are not supported.",
    "OR": "Write CREATE; a table of the catalog is dropped before it is declared again.",
}


def parse(script: Script) -> tuple[Statement, ...]:
    return _parse(script, tokenize(script))


def parse_each(script: Script) -> tuple[list[Statement], list[tuple[SqlError, Sequence[SqlToken]]]]:
    """The statements that can be read, and the faults of the others with their tokens.

    Raises SqlError if the text is too large or contains something that is no token.
    """
    read: list[Statement] = []
    faults: list[tuple[SqlError, Sequence[SqlToken]]] = []
    for tokens, _ in groups(script):
        try:
            read += _parse(script, _closed(tokens))
        except SqlError as fault:
            inserts = _inserts_of_set(tokens)
            faults += _faults_within(script, inserts, read) or [(fault, tokens)]
    return read, faults


def _closed(tokens: Sequence[SqlToken]) -> list[SqlToken]:
    end = tokens[-1].end
    return [*tokens, SqlToken(SqlTokenKind.END, "", end, end)]


def _inserts_of_set(tokens: Sequence[SqlToken]) -> list[Sequence[SqlToken]]:
    """The statements within a statement set; none for another statement."""
    words = [token.text.upper() for token in tokens[:4]]
    if "SET" not in words or "STATEMENT" not in words:
        return []
    parts: list[list[SqlToken]] = [[]]
    for token in tokens:
        if token.kind is SqlTokenKind.SYMBOL and token.text == ";":
            parts.append([])
        else:
            parts[-1].append(token)
    starts = ([t.text.upper() for t in part] for part in parts)
    firsts = [words.index("INSERT") if "INSERT" in words else -1 for words in starts]
    return [part[at:] for part, at in zip(parts, firsts, strict=True) if at >= 0]


def _faults_within(
    script: Script, parts: Iterable[Sequence[SqlToken]], read: list[Statement]
) -> list[tuple[SqlError, Sequence[SqlToken]]]:
    faults: list[tuple[SqlError, Sequence[SqlToken]]] = []
    for tokens in parts:
        try:
            read += _parse(script, _closed(tokens))
        except SqlError as fault:
            faults.append((fault, tokens))
    return faults


def _parse(script: Script, tokens: list[SqlToken]) -> tuple[Statement, ...]:
    cursor = TokenCursor(script, tokens)
    try:
        return _StatementParser(cursor).statements()
    except RecursionError as exc:
        raise script.error(
            cursor.at,
            "the expression is nested too deeply",
            hint="Split it or move a part into a computed column.",
        ) from exc


class _StatementParser:
    def __init__(self, cursor: TokenCursor) -> None:
        self._cursor = cursor
        self._expressions = ExpressionParser(cursor)
        self._queries = QueryParser(cursor, self._expressions)
        self._namespaces = NamespaceParser(cursor)
        questions = QuestionParser(cursor, self._job)
        self._readers: dict[str, Callable[[], Statement]] = {
            "CREATE": self._create,
            "DROP": self._drop,
            "SET": self._set,
            "RESET": self._reset,
            "INSERT": self._insert,
            "SELECT": self._queries.select,
            "WITH": self._queries.select,
            "USE": self._namespaces.use,
            "EXECUTE": self._execute,
            "BEGIN": self._statement_set,
            "EXPLAIN": questions.explain,
            "DESCRIBE": questions.describe,
            "DESC": questions.describe,
            "SHOW": questions.show,
            "STOP": questions.stop,
        }

    def statements(self) -> tuple[Statement, ...]:
        cursor = self._cursor
        statements: list[Statement] = []
        while not cursor.at_end():
            if cursor.accept_symbol(";"):
                continue
            statements.append(self._statement())
            if not cursor.at_end() and not cursor.at_symbol(";"):
                fault = cursor.unexpected('";" or the end', hint='Separate statements by ";".')
                if cursor.at_words("SET"):
                    fault.edit = Edit(cursor.end_of_last, cursor.end_of_last, ";")
                raise fault
        return tuple(statements)

    def _without_effect(self) -> WithoutEffect | None:
        """A statement that no job needs, to its end."""
        cursor, at = self._cursor, self._cursor.at
        ahead = [cursor.ahead(i).text.upper() for i in range(4)]
        words = [word for word in ahead if word not in ("TEMPORARY", "SYSTEM")]
        name = " ".join(words[:2])
        if name not in _WITHOUT_EFFECT or cursor.token.kind is not SqlTokenKind.WORD:
            return None
        function = None
        if name == "CREATE FUNCTION":
            while not cursor.accept_words("FUNCTION"):
                cursor.advance()
            cursor.accept_words("IF", "NOT", "EXISTS")
            function = read_table(cursor, "the name of a function")
        while not cursor.at_end() and not cursor.at_symbol(";"):
            cursor.advance()
        return WithoutEffect(name, _WITHOUT_EFFECT[name], at, function)

    def _statement(self) -> Statement:
        cursor = self._cursor
        ignored = self._without_effect()
        if ignored is not None:
            return ignored
        if cursor.token.kind is SqlTokenKind.WORD:
            read = self._readers.get(cursor.token.text.upper())
            if read is not None:
                return read()
        word = cursor.token.text.upper() if cursor.token.kind is SqlTokenKind.WORD else ""
        if word in _OTHER_STATEMENTS:
            at = cursor.at
            while not cursor.at_end() and not cursor.at_symbol(";"):
                cursor.advance()
            raise cursor.script.error(
                at,
                f"{word} statements are not supported",
                hint=f"{OUTSIDE} {_OTHER_STATEMENTS[word]}",
            )
        prompt = _PROMPT.match(cursor.script.text, cursor.at)
        if prompt is not None:
            raise cursor.script.error(
                cursor.at,
                f'expected a statement, found the prompt "{prompt[0].strip()}"',
                hint="Remove the prompt.",
                edit=Edit(prompt.start(), prompt.end(), ""),
            )
        otherwise = "Statements start with " + ", ".join(sorted(self._readers)) + "."
        raise cursor.unexpected("a statement", hint=suggestion(word, self._readers, otherwise))

    def _set(self) -> SetOption | ShowSettings:
        cursor = self._cursor
        at = cursor.advance().start
        if cursor.at_end() or cursor.at_symbol(";"):
            return ShowSettings(at)
        return SetOption(read_setting(cursor, "Write SET 'key' = 'value'."), at)

    def _reset(self) -> Reset:
        cursor = self._cursor
        at = cursor.advance().start
        if cursor.at_end() or cursor.at_symbol(";"):
            return Reset(None, at)
        key = read_string(cursor, "a key in single quotes", hint="Write RESET 'key' or RESET.")
        return Reset(key.text, key.start)

    def _create(self) -> CreateTable | CreateTableAs | CreateView | Namespace:
        cursor = self._cursor
        at = cursor.advance().start
        temporary = cursor.accept_words("TEMPORARY")
        shared = cursor.accept_words("SHARED")
        for word, hint in _OTHER_CREATES.items():
            if cursor.at_words(word) or cursor.at_words("SYSTEM", word):
                shown = "OR REPLACE" if word == "OR" else word
                if word == "OR":
                    end = cursor.ahead(2).start
                    edit = Edit(cursor.at, end, "")
                    raise cursor.script.error(
                        at, f"CREATE {shown} is not supported", hint=hint, edit=edit
                    )
                raise cursor.script.error(
                    at, f"CREATE {shown} is not supported", hint=f"{OUTSIDE} {hint}"
                )
        if shared and (temporary or not cursor.at_words("TABLE")):
            raise cursor.script.error(
                at,
                f"CREATE {'TEMPORARY ' * temporary}SHARED {cursor.token.text.upper()[:40]} is not "
                "supported",
                hint="Write CREATE SHARED TABLE name (columns) WITH (options): only tables are "
                "shared, and never temporary ones.",
            )
        if cursor.accept_words("VIEW"):
            return replace(self._view(at), temporary=temporary)
        if self._namespaces.is_named():
            return self._namespaces.create(at)
        table = TableParser(cursor, self._expressions, self._queries).create(at)
        if isinstance(table, CreateTable):
            return replace(table, temporary=temporary, shared=shared)
        return self._not_shared(table) if shared else table

    def _not_shared(self, table: CreateTableAs) -> NoReturn:
        raise self._cursor.script.error(
            table.at,
            "CREATE SHARED TABLE … AS is not supported",
            hint="A shared table is copied from a database, files or a topic: write CREATE SHARED "
            "TABLE name (columns) WITH (options).",
        )

    def _view(self, at: int) -> CreateView:
        cursor = self._cursor
        if_not_exists = cursor.accept_words("IF", "NOT", "EXISTS")
        name = read_table(cursor, "a view name")
        columns = read_names(cursor, "CREATE VIEW name") if cursor.at_symbol("(") else None
        if cursor.accept_words("COMMENT"):
            read_string(cursor, "a comment in single quotes", hint="Write COMMENT 'text'.")
        cursor.expect_words("AS", hint="Write CREATE VIEW name AS SELECT … FROM ….")
        start = cursor.at
        select = self._query_without_limit()
        return CreateView(name, if_not_exists, columns, select, at, start, cursor.end_of_last)

    def _drop(self) -> Drop | Namespace:
        cursor = self._cursor
        at = cursor.advance().start
        if self._namespaces.is_named():
            return self._namespaces.drop(at)
        cursor.accept_words("TEMPORARY")
        form = "Write DROP TABLE [IF EXISTS] name or DROP VIEW [IF EXISTS] name."
        what = cursor.token.text.upper()
        if not cursor.accept_words("TABLE") and not cursor.accept_words("VIEW"):
            raise cursor.unexpected("TABLE or VIEW", hint=form)
        if_exists = cursor.accept_words("IF", "EXISTS")
        name = read_table(cursor, f"a {what.lower()} name", hint=form)
        return Drop(what, name, if_exists, at)

    def _execute(self) -> Insert | StatementSet:
        if not self._cursor.at_words("EXECUTE", "INSERT"):
            return self._statement_set()
        self._cursor.advance()
        return self._insert()

    def _statement_set(self) -> StatementSet:
        """EXECUTE STATEMENT SET BEGIN … END, or the older BEGIN STATEMENT SET; … END."""
        cursor = self._cursor
        form = "Write EXECUTE STATEMENT SET BEGIN INSERT INTO …; END."
        at = cursor.at
        if cursor.accept_words("BEGIN"):
            cursor.expect_words("STATEMENT", "SET", hint=form)
            cursor.expect_symbol(";", hint=form)
        else:
            cursor.accept_words("EXECUTE")
            cursor.expect_words("STATEMENT", "SET", "BEGIN", hint=form)
        inserts: list[Insert] = []
        while not cursor.accept_words("END"):
            if not cursor.at_words("INSERT"):
                raise cursor.unexpected("INSERT INTO or END", hint=form)
            inserts.append(self._insert())
            cursor.expect_symbol(";", hint='Put ";" behind each INSERT INTO of the set.')
        if not inserts:
            raise cursor.script.error(at, "the statement set has no INSERT INTO", hint=form)
        return StatementSet(tuple(inserts), at)

    def _job(self) -> JobStatement:
        cursor = self._cursor
        if cursor.at_words("INSERT"):
            return self._insert()
        if self._queries.at_query():
            return self._queries.select()
        if cursor.at_words("EXECUTE") or cursor.at_words("STATEMENT", "SET"):
            return self._statement_set()
        raise cursor.unexpected(
            "INSERT INTO, SELECT or a statement set", hint="Write EXPLAIN INSERT INTO … SELECT …."
        )

    def _insert(self) -> Insert:
        cursor = self._cursor
        at = cursor.advance().start
        if cursor.at_words("OVERWRITE"):
            raise cursor.script.error(
                at,
                "INSERT OVERWRITE is not supported",
                hint=f"{OUTSIDE} Write INSERT INTO table SELECT ….",
            )
        cursor.expect_words("INTO", hint="Write INSERT INTO table SELECT ….")
        cursor.accept_words("TABLE")
        table = read_table(cursor, "a table name")
        if cursor.at_words("PARTITION"):
            raise cursor.script.error(
                cursor.at, "PARTITION is not supported", hint="Write INSERT INTO table SELECT …."
            )
        options = read_hint(cursor)
        follows = cursor.ahead(1)
        is_query = follows.text.upper() in ("SELECT", "WITH", "(") and (
            follows.kind is not SqlTokenKind.QUOTED_NAME
        )
        is_list = cursor.at_symbol("(") and not is_query
        columns = read_names(cursor, "INSERT INTO table") if is_list else None
        if cursor.at_words("VALUES") or cursor.at_words("TABLE"):
            raise cursor.script.error(
                cursor.at,
                f"INSERT INTO … {cursor.token.text.upper()} is not supported",
                hint=f"{OUTSIDE} Write INSERT INTO table SELECT … FROM stream JOIN dimension ….",
            )
        query, conflict = self._queries.inserted()
        return Insert(table, columns, query, at, options, conflict)

    def _query_without_limit(self) -> Select:
        query = self._queries.select()
        if query.limit is not None:
            raise self._queries.no_limit(query)
        return query
