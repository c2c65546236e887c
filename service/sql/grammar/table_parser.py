"""CREATE TABLE: columns, key, options, and LIKE another table."""

from dataclasses import dataclass, field

from service.sql.grammar.cursor import (
    TokenCursor,
    read_names,
    read_options,
    read_string,
    read_table,
    read_whole_number,
)
from service.sql.grammar.expression_nodes import Name, TypeNode
from service.sql.grammar.expression_parser import ExpressionParser
from service.sql.grammar.query_parser import QueryParser, limit_columns
from service.sql.grammar.syntax import (
    ColumnNode,
    ComputedColumn,
    CreateTable,
    CreateTableAs,
    Feature,
    Like,
    Merging,
    MetadataColumn,
    OptionNode,
    PhysicalColumn,
    WatermarkNode,
)
from service.sql.grammar.type_parser import column_type
from service.sql.text.dialect import SqlTokenKind
from service.sql.text.script import Edit, SqlError

_FORM = "Write CREATE TABLE name (columns) WITH (options)."
_OPTIONS_FORM = "Write WITH ('connector' = 'kafka', …)."
_LIKE_FORM = (
    "Write LIKE table (INCLUDING ALL OVERWRITING OPTIONS), or {INCLUDING | EXCLUDING} "
    "{ALL | CONSTRAINTS | GENERATED | METADATA | OPTIONS | PARTITIONS | WATERMARKS}."
)
_WATERMARK_FORM = "Write WATERMARK FOR ts AS ts - INTERVAL '5' SECOND."
_FEATURES_WITHOUT_EFFECT = ("DISTRIBUTION",)
_OTHER_CLAUSES = {
    "STORED": "Write CREATE TABLE name (columns) WITH ('connector' = …).",
    "ROW": "Write CREATE TABLE name (columns) WITH ('connector' = …).",
    "USING": "Write CREATE TABLE name (columns) WITH ('connector' = …).",
    "LOCATION": "Write CREATE TABLE name (columns) WITH ('connector' = …).",
    "TBLPROPERTIES": "Write CREATE TABLE name (columns) WITH ('connector' = …).",
    "OPTIONS": "Write CREATE TABLE name (columns) WITH ('connector' = …).",
}
_CLAUSES = ("COMMENT", "DISTRIBUTED", "PARTITIONED")
_DISTRIBUTED_FORM = "Write DISTRIBUTED BY HASH(id) INTO 6 BUCKETS."
_BY_DEFAULT = dict.fromkeys(Feature, Merging.INCLUDING) | {Feature.OPTIONS: Merging.OVERWRITING}
_CAN_BE_OVERWRITTEN = ("GENERATED", "METADATA", "OPTIONS", "WATERMARKS")


@dataclass(slots=True)
class _Schema:
    """The part of a CREATE TABLE between its parentheses, while it is read."""

    columns: list[ColumnNode] = field(default_factory=list)
    keys: list[tuple[Name, ...]] = field(default_factory=list)
    watermark: WatermarkNode | None = None
    bare_key: bool = False
    clauses: list[str] = field(default_factory=list)
    end: int = 0


class TableParser:
    """Reads a CREATE TABLE from a cursor."""

    def __init__(
        self, cursor: TokenCursor, expressions: ExpressionParser, queries: QueryParser
    ) -> None:
        self._cursor = cursor
        self._expressions = expressions
        self._queries = queries

    def create(self, at: int) -> CreateTable | CreateTableAs:
        """Read the part after CREATE [TEMPORARY], whose offset is `at`."""
        cursor = self._cursor
        cursor.expect_words("TABLE", hint=_FORM)
        if_not_exists = cursor.accept_words("IF", "NOT", "EXISTS")
        name = read_table(cursor, "a table name")
        schema = _Schema()
        if not any(map(cursor.at_words, ("LIKE", "AS", "WITH", *_CLAUSES, *_OTHER_CLAUSES))):
            self._read(schema)
        partitioned = self._table_clauses(schema)
        options: tuple[OptionNode, ...] = ()
        options_at = cursor.at
        if cursor.at_words("AS") and not schema.columns:
            options, options_at = self._default_options(name), 0
            schema.clauses.append(
                f"has no WITH: it is the Delta table of this name in the warehouse, as 'connector' "
                f"= 'delta', 'path' = '{name.text}' says"
            )
        elif cursor.at_end() or cursor.at_symbol(";"):
            options_at = 0
        elif not cursor.at_words("LIKE"):
            cursor.expect_words("WITH", hint=_OPTIONS_FORM)
            options_at = cursor.at
            options = read_options(cursor, _OPTIONS_FORM)
        options_end = cursor.end_of_last
        like = self._like() if cursor.accept_words("LIKE") else None
        table = CreateTable(
            name=name,
            if_not_exists=if_not_exists,
            columns=tuple(schema.columns),
            primary_key=schema.keys[0] if schema.keys else (),
            options=options,
            at=at,
            like=like,
            watermark=schema.watermark,
            bare_key=schema.bare_key,
            partitioned=partitioned,
            clauses=tuple(schema.clauses),
            options_at=options_at,
            options_end=options_end,
            columns_end=schema.end,
        )
        return self._filled(table, schema)

    def _default_options(self, name: Name) -> tuple[OptionNode, ...]:
        """CREATE TABLE … AS without WITH fills a Delta table of its name in the warehouse."""
        made = (("connector", "delta"), ("path", name.text))
        return tuple(OptionNode(key, text, name.at, name.at, name.at) for key, text in made)

    def _filled(self, table: CreateTable, schema: _Schema) -> CreateTable | CreateTableAs:
        cursor = self._cursor
        at = cursor.at
        if not cursor.accept_words("AS"):
            return table
        if schema.columns or schema.keys or schema.watermark or table.like:
            raise cursor.script.error(
                at,
                "CREATE TABLE … AS declares columns",
                hint="Leave the columns out: the query defines them. Or fill the table with "
                "INSERT INTO.",
            )
        query = self._queries.select()
        if query.limit is not None:
            raise self._queries.no_limit(query)
        return CreateTableAs(table, query, table.at)

    def _like(self) -> Like:
        cursor = self._cursor
        table = read_table(cursor, "a table name", hint=_LIKE_FORM)
        mergings: dict[str, Merging] = {}
        if cursor.accept_symbol("("):
            while not cursor.accept_symbol(")"):
                merging, at = self._merging(), cursor.at
                feature = self._feature()
                if merging is Merging.OVERWRITING and feature not in _CAN_BE_OVERWRITTEN:
                    raise cursor.script.error(
                        at, f"{feature} cannot be OVERWRITING", hint=_LIKE_FORM
                    )
                if feature in mergings:
                    raise cursor.script.error(at, f"{feature} is given twice", hint=_LIKE_FORM)
                mergings[feature] = merging
        of_all = mergings.get("ALL")
        defaults = _BY_DEFAULT if of_all is None else dict.fromkeys(Feature, of_all)
        return Like(table, {f: mergings.get(f.name, defaults[f]) for f in Feature})

    def _merging(self) -> Merging:
        for merging in Merging:
            if self._cursor.accept_words(merging.name):
                return merging
        raise self._cursor.unexpected("INCLUDING, EXCLUDING or OVERWRITING", hint=_LIKE_FORM)

    def _feature(self) -> str:
        for word in (*Feature.__members__, "ALL", *_FEATURES_WITHOUT_EFFECT):
            if self._cursor.accept_words(word):
                return word
        raise self._cursor.unexpected("what of the table is meant", hint=_LIKE_FORM)

    def _read(self, schema: _Schema) -> None:
        cursor = self._cursor
        cursor.expect_symbol("(", hint="List the columns: CREATE TABLE name (id BIGINT, …).")
        while True:
            at = cursor.at
            if cursor.at_words("WATERMARK", "FOR"):
                self._watermark(schema)
            elif not self._constraint(schema):
                schema.columns.append(self._column(schema))
            limit_columns(cursor, len(schema.columns), at)
            if len(schema.keys) > 1:
                raise cursor.script.error(
                    at, "a second primary key", hint="Write PRIMARY KEY (a, b) NOT ENFORCED once."
                )
            if not cursor.accept_symbol(","):
                break
        schema.end = cursor.end_of_last
        cursor.expect_symbol(")", hint="Separate columns by commas and close the list.")

    def _watermark(self, schema: _Schema) -> None:
        cursor = self._cursor
        at = cursor.at
        cursor.expect_words("WATERMARK", "FOR", hint=_WATERMARK_FORM)
        if schema.watermark is not None:
            raise cursor.script.error(
                at, "a second WATERMARK FOR", hint="A table has one time: keep one of the two."
            )
        column = cursor.name("a column name", hint=_WATERMARK_FORM)
        if cursor.at_symbol("."):
            raise cursor.script.error(
                column.at,
                f'WATERMARK FOR names a field inside "{column.text}"',
                hint="Name a column of the table; a computed column may take a field out.",
            )
        cursor.expect_words("AS", hint=_WATERMARK_FORM)
        start = cursor.at
        expression = self._expressions.parse()
        schema.watermark = WatermarkNode(column, expression, at, start, cursor.end_of_last)

    def _constraint(self, schema: _Schema) -> bool:
        """Read `[CONSTRAINT name] PRIMARY KEY (…) NOT ENFORCED`, or refuse other clauses."""
        cursor = self._cursor
        if cursor.at_words("CONSTRAINT") and cursor.ahead(1).kind in (
            SqlTokenKind.WORD,
            SqlTokenKind.QUOTED_NAME,
        ):
            cursor.advance()
            cursor.name("a constraint name")
        elif not cursor.at_words("PRIMARY", "KEY"):
            return False
        cursor.expect_words("PRIMARY", "KEY", hint="Write PRIMARY KEY (id) NOT ENFORCED.")
        schema.keys.append(read_names(cursor, "PRIMARY KEY"))
        self._not_enforced(schema)
        return True

    def _not_enforced(self, schema: _Schema) -> None:
        cursor = self._cursor
        if cursor.at_words("ENFORCED"):
            raise cursor.unexpected(
                "NOT ENFORCED",
                hint="Write PRIMARY KEY (id) NOT ENFORCED: the database enforces the key.",
            )
        if not cursor.accept_words("NOT", "ENFORCED"):
            schema.bare_key = True

    def _column(self, schema: _Schema) -> ColumnNode:
        cursor = self._cursor
        name = cursor.name("a column name")
        if cursor.accept_words("AS"):
            start = cursor.at
            expression = self._expressions.parse()
            computed = ComputedColumn(name, expression, start, cursor.end_of_last)
            self._comment()
            return computed
        kind = column_type(cursor)
        nullable = self._nullability()
        if cursor.at_words("METADATA"):
            return self._metadata(name, kind)
        if cursor.accept_words("PRIMARY", "KEY"):
            self._not_enforced(schema)
            schema.keys.append((name,))
            nullable = self._nullability() and nullable
        self._comment()
        return PhysicalColumn(name, kind, nullable)

    def _nullability(self) -> bool:
        if self._cursor.at_words("NOT", "NULL"):
            return not self._cursor.accept_words("NOT", "NULL")
        self._cursor.accept_words("NULL")
        return True

    def _metadata(self, name: Name, kind: TypeNode) -> MetadataColumn:
        cursor = self._cursor
        cursor.advance()
        key, key_at = name.text, name.at
        if cursor.accept_words("FROM"):
            key_at, key = cursor.at, self._metadata_key()
        virtual = cursor.accept_words("VIRTUAL")
        self._comment()
        return MetadataColumn(name, kind, key, virtual, key_at, cursor.end_of_last)

    def _metadata_key(self) -> str:
        cursor, token = self._cursor, self._cursor.token
        try:
            return read_string(
                cursor, "a metadata key in single quotes", hint="Write FROM 'offset'."
            ).text
        except SqlError as fault:
            if token.kind is SqlTokenKind.QUOTED_NAME:
                quoted = "'" + token.text.replace("'", "''") + "'"
                fault.edit = Edit(token.start, token.end, quoted)
            raise

    def _distribution(self) -> None:
        """`BY [HASH | RANGE] (columns) [INTO n BUCKETS]`, or `INTO n BUCKETS`."""
        cursor = self._cursor
        if cursor.accept_words("BY"):
            if not cursor.accept_words("HASH"):
                cursor.accept_words("RANGE")
            read_names(cursor, "DISTRIBUTED BY")
        elif not cursor.at_words("INTO"):
            raise cursor.unexpected("BY or INTO", hint=_DISTRIBUTED_FORM)
        if cursor.accept_words("INTO"):
            read_whole_number(cursor, "the number of buckets", 1, 2**31 - 1)
            cursor.expect_words("BUCKETS", hint=_DISTRIBUTED_FORM)

    def _comment(self) -> None:
        if self._cursor.accept_words("COMMENT"):
            read_string(self._cursor, "a comment in single quotes", hint="Write COMMENT 'text'.")

    def _table_clauses(self, schema: _Schema) -> tuple[Name, ...]:
        """Read COMMENT, DISTRIBUTED and PARTITIONED BY; returns the latter's columns."""
        cursor = self._cursor
        self._comment()
        if cursor.accept_words("DISTRIBUTED"):
            self._distribution()
            schema.clauses.append(
                "has DISTRIBUTED, which has no effect: a record's partition is that of its key, by "
                "option 'key.fields'"
            )
        partitioned: tuple[Name, ...] = ()
        if cursor.accept_words("PARTITIONED"):
            cursor.expect_words("BY", hint="Write PARTITIONED BY (day).")
            if cursor.ahead(2).kind is SqlTokenKind.WORD:
                raise cursor.script.error(
                    cursor.ahead(2).start,
                    "PARTITIONED BY declares a column, as in Hive",
                    hint="Declare the column in the list of the columns, and write PARTITIONED BY "
                    "(name).",
                )
            partitioned = read_names(cursor, "PARTITIONED BY")
        for word, hint in _OTHER_CLAUSES.items():
            if cursor.at_words(word):
                raise cursor.script.error(cursor.at, f"{word} is not supported", hint=hint)
        return partitioned
