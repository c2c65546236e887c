"""Statements: CREATE TABLE, SET and INSERT INTO … SELECT. Everything else is refused by name."""

from service.sql.cursor import TokenCursor
from service.sql.dialect import Kind, tokenize
from service.sql.errors import suggestion
from service.sql.expression_parser import ExpressionParser
from service.sql.query_parser import QueryParser, limit_columns, refuse_qualified
from service.sql.script import Script
from service.sql.syntax import (
    ColumnNode,
    ComputedColumn,
    CreateTable,
    Insert,
    MetadataColumn,
    Name,
    OptionNode,
    PhysicalColumn,
    SetOption,
    Statement,
    TypeNode,
)
from service.sql.type_parser import parse_type

_STATEMENTS = "CREATE TABLE, SET and INSERT INTO"
_OTHER_STATEMENTS: dict[str, str] = {
    "EXECUTE": "Write the INSERT INTO alone, one job a script.",
    "BEGIN": "Write the INSERT INTO alone, one job a script.",
    "EXPLAIN": "Submit the INSERT INTO without EXPLAIN; the job shows its plan.",
    "SELECT": "Put INSERT INTO a table in front of the query.",
    "WITH": "Put INSERT INTO a table in front and write the query without WITH.",
    "DROP": "A script starts with no tables, so nothing needs to be dropped.",
    "ALTER": "Change the CREATE TABLE statement itself.",
    "USE": "Remove it: a script has one catalog and one database.",
    "RESET": "Remove the SET statement instead.",
    "UPDATE": "A job inserts only; change the table in its own database.",
    "DELETE": "A job inserts only; change the table in its own database.",
    "MERGE": "A job inserts only; change the table in its own database.",
    "ADD": "Code and files cannot be added to a job.",
    "LOAD": "Code and files cannot be added to a job.",
    "CALL": "Procedures cannot be called from a script.",
}
_OTHER_CREATES: dict[str, str] = {
    "VIEW": "Write the view's expressions into the INSERT INTO.",
    "FUNCTION": "Use the functions that are built in; code cannot be added to a job.",
    "CATALOG": "Remove it: a script has one catalog and one database.",
    "DATABASE": "Remove it: a script has one catalog and one database.",
    "MODEL": "Models are not supported.",
    "OR": "Write CREATE TABLE; a script starts with no tables.",
}


def parse(script: Script) -> tuple[Statement, ...]:
    """The statements of a script.

    Raises:
        SqlError: it is too large or not in the grammar; the error points at the first bad token.
    """
    cursor = TokenCursor(script, tokenize(script))
    try:
        return _StatementParser(cursor).statements()
    except RecursionError as exc:
        raise script.error(
            cursor.at,
            "the expression is nested too deeply",
            hint="Split it or move a part into a computed column.",
        ) from exc


class _StatementParser:
    """Reads a script's statements from a cursor."""

    def __init__(self, cursor: TokenCursor) -> None:
        self._cursor = cursor
        self._expressions = ExpressionParser(cursor)

    def statements(self) -> tuple[Statement, ...]:
        cursor = self._cursor
        found: list[Statement] = []
        while not cursor.at_end():
            if cursor.accept_symbol(";"):
                continue
            found.append(self._statement())
            if not cursor.at_end() and not cursor.at_symbol(";"):
                raise cursor.unexpected('";" or the end', hint='Separate statements by ";".')
        return tuple(found)

    def _statement(self) -> Statement:
        cursor = self._cursor
        if cursor.at_words("CREATE"):
            return self._create()
        if cursor.at_words("SET"):
            return self._set()
        if cursor.at_words("INSERT"):
            return self._insert()
        word = cursor.token.text.upper() if cursor.token.kind is Kind.WORD else ""
        if word in _OTHER_STATEMENTS:
            raise cursor.script.error(
                cursor.at, f"{word} statements are not supported", hint=_OTHER_STATEMENTS[word]
            )
        hint = suggestion(word, ("CREATE", "SET", "INSERT"), f"Statements are {_STATEMENTS}.")
        raise cursor.unexpected("a statement", hint=hint)

    def _set(self) -> SetOption:
        cursor = self._cursor
        at = cursor.advance().start
        return SetOption(self._option("Write SET 'key' = 'value'."), at)

    def _option(self, form: str) -> OptionNode:
        cursor = self._cursor
        key = cursor.string("a key in single quotes", hint=form)
        cursor.expect_symbol("=", hint=form)
        value = cursor.string("a value in single quotes", hint=form)
        return OptionNode(key.text, value.text, key.start, value.start, value.end)

    def _create(self) -> CreateTable:
        cursor = self._cursor
        at = cursor.advance().start
        cursor.accept_words("TEMPORARY")
        for word, hint in _OTHER_CREATES.items():
            if cursor.at_words(word) or cursor.at_words("SYSTEM", word):
                shown = "OR REPLACE" if word == "OR" else word
                raise cursor.script.error(at, f"CREATE {shown} is not supported", hint=hint)
        cursor.expect_words("TABLE", hint="Write CREATE TABLE name (columns) WITH (options).")
        if_not_exists = cursor.accept_words("IF", "NOT", "EXISTS")
        name = cursor.name("a table name")
        refuse_qualified(cursor, name)
        columns, primary_key = self._columns()
        self._table_clauses()
        return CreateTable(name, if_not_exists, columns, primary_key, self._options(), at)

    def _columns(self) -> tuple[tuple[ColumnNode, ...], tuple[Name, ...]]:
        cursor = self._cursor
        if cursor.at_words("AS") or cursor.at_words("LIKE"):
            raise cursor.script.error(
                cursor.at,
                f"CREATE TABLE … {cursor.token.text.upper()} is not supported",
                hint="List the columns: CREATE TABLE name (id BIGINT, …) WITH (…).",
            )
        cursor.expect_symbol("(", hint="List the columns: CREATE TABLE name (id BIGINT, …).")
        columns: list[ColumnNode] = []
        keys: list[tuple[Name, ...]] = []
        while True:
            at = cursor.at
            if not self._constraint(keys):
                columns.append(self._column(keys))
            limit_columns(cursor, len(columns), at)
            if len(keys) > 1:
                raise cursor.script.error(
                    at, "a second primary key", hint="Write PRIMARY KEY (a, b) NOT ENFORCED once."
                )
            if not cursor.accept_symbol(","):
                break
        cursor.expect_symbol(")", hint="Separate columns by commas and close the list.")
        return tuple(columns), keys[0] if keys else ()

    def _constraint(self, keys: list[tuple[Name, ...]]) -> bool:
        """Read `[CONSTRAINT name] PRIMARY KEY (…) NOT ENFORCED`, or refuse other clauses."""
        cursor = self._cursor
        if cursor.at_words("WATERMARK", "FOR"):
            raise cursor.script.error(
                cursor.at,
                "WATERMARK FOR is not supported",
                hint="Declare a processing-time column instead: proctime AS PROCTIME().",
            )
        if cursor.at_words("CONSTRAINT") and cursor.ahead(1).kind in (Kind.WORD, Kind.QUOTED_NAME):
            cursor.advance()
            cursor.name("a constraint name")
        elif not cursor.at_words("PRIMARY", "KEY"):
            return False
        cursor.expect_words("PRIMARY", "KEY", hint="Write PRIMARY KEY (id) NOT ENFORCED.")
        keys.append(self._names("PRIMARY KEY"))
        self._not_enforced()
        return True

    def _not_enforced(self) -> None:
        hint = "Write PRIMARY KEY (id) NOT ENFORCED: the database enforces the key."
        self._cursor.expect_words("NOT", "ENFORCED", hint=hint)

    def _names(self, what: str) -> tuple[Name, ...]:
        cursor = self._cursor
        cursor.expect_symbol("(", hint=f"Write {what} (a, b).")
        names = [cursor.name("a column name")]
        while cursor.accept_symbol(","):
            names.append(cursor.name("a column name"))
        cursor.expect_symbol(")", hint=f"Write {what} (a, b).")
        return tuple(names)

    def _column(self, keys: list[tuple[Name, ...]]) -> ColumnNode:
        cursor = self._cursor
        name = cursor.name("a column name")
        if cursor.accept_words("AS"):
            computed = ComputedColumn(name, self._expressions.parse())
            self._comment()
            return computed
        column_type = parse_type(cursor)
        if cursor.at_words("METADATA"):
            return self._metadata(name, column_type)
        nullable = self._nullability()
        if cursor.accept_words("PRIMARY", "KEY"):
            self._not_enforced()
            keys.append((name,))
            nullable = self._nullability() and nullable
        self._comment()
        return PhysicalColumn(name, column_type, nullable)

    def _nullability(self) -> bool:
        if self._cursor.at_words("NOT", "NULL"):
            return not self._cursor.accept_words("NOT", "NULL")
        self._cursor.accept_words("NULL")
        return True

    def _metadata(self, name: Name, column_type: TypeNode) -> MetadataColumn:
        cursor = self._cursor
        cursor.advance()
        key = name.text
        if cursor.accept_words("FROM"):
            key = cursor.string("a metadata key in single quotes", hint="Write FROM 'offset'.").text
        virtual = cursor.accept_words("VIRTUAL")
        self._comment()
        return MetadataColumn(name, column_type, key, virtual)

    def _comment(self) -> None:
        if self._cursor.accept_words("COMMENT"):
            self._cursor.string("a comment in single quotes", hint="Write COMMENT 'text'.")

    def _table_clauses(self) -> None:
        cursor = self._cursor
        self._comment()
        for word in ("PARTITIONED", "DISTRIBUTED", "USING", "LOCATION", "TBLPROPERTIES", "OPTIONS"):
            if cursor.at_words(word):
                raise cursor.script.error(
                    cursor.at,
                    f"{word} is not supported",
                    hint="Write CREATE TABLE name (columns) WITH ('connector' = …).",
                )

    def _options(self) -> tuple[OptionNode, ...]:
        cursor = self._cursor
        form = "Write WITH ('connector' = 'kafka', …)."
        cursor.expect_words("WITH", hint=form)
        cursor.expect_symbol("(", hint=form)
        options = [self._option(form)]
        while cursor.accept_symbol(","):
            options.append(self._option(form))
        cursor.expect_symbol(")", hint="Separate options by commas and close the list.")
        if cursor.at_words("AS") or cursor.at_words("LIKE"):
            raise cursor.script.error(
                cursor.at,
                f"CREATE TABLE … {cursor.token.text.upper()} is not supported",
                hint="List the columns and fill the table by INSERT INTO.",
            )
        return tuple(options)

    def _insert(self) -> Insert:
        cursor = self._cursor
        at = cursor.advance().start
        if cursor.at_words("OVERWRITE"):
            raise cursor.script.error(
                at, "INSERT OVERWRITE is not supported", hint="Write INSERT INTO table SELECT …."
            )
        cursor.expect_words("INTO", hint="Write INSERT INTO table SELECT ….")
        table = cursor.name("a table name")
        refuse_qualified(cursor, table)
        if cursor.at_words("PARTITION"):
            raise cursor.script.error(
                cursor.at, "PARTITION is not supported", hint="Write INSERT INTO table SELECT …."
            )
        columns = self._names("INSERT INTO table") if cursor.at_symbol("(") else None
        if cursor.at_words("VALUES") or cursor.at_words("WITH") or cursor.at_words("TABLE"):
            raise cursor.script.error(
                cursor.at,
                f"INSERT INTO … {cursor.token.text.upper()} is not supported",
                hint="Write INSERT INTO table SELECT … FROM probe JOIN dimension ….",
            )
        query = QueryParser(cursor, self._expressions).select()
        return Insert(table, columns, query, at)
