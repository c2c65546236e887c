"""Window functions in FROM: [TABLE(]TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL …)[)]."""

from collections.abc import Callable

from joins.plan.plan import WindowKind
from service.sql.grammar.cursor import TokenCursor, read_hint, read_table
from service.sql.grammar.expression_nodes import Node, Reference
from service.sql.grammar.syntax import Relation, WindowNode
from service.sql.text.script import suggestion

WINDOWS = tuple(WindowKind)
GROUP_FORM = (
    "Write SELECT window_start, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), "
    "INTERVAL '1' MINUTE)) GROUP BY window_start, window_end."
)
_FORMS = {
    WindowKind.TUMBLE: "Write TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE).",
    WindowKind.HOP: "Write HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10' "
    "MINUTE): first the slide, then the size.",
    WindowKind.CUMULATE: "Write CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL "
    "'1' HOUR): first the step, then the size.",
    WindowKind.SESSION: "Write SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' "
    "MINUTE).",
}
_PARAMETERS = {
    WindowKind.TUMBLE: ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    WindowKind.HOP: ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    WindowKind.CUMULATE: ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    WindowKind.SESSION: ("DATA", "TIMECOL", "GAP"),
}


def read_window(
    cursor: TokenCursor, parse: Callable[[], Node], subquery: Callable[[], Relation]
) -> tuple[Relation, WindowNode]:
    """Read a window function with or without TABLE(…) around it."""
    is_wrapped = cursor.accept_words("TABLE")
    if is_wrapped:
        cursor.expect_symbol("(", hint=GROUP_FORM)
    at = cursor.at
    kind = _kind(cursor)
    cursor.expect_symbol("(", hint=_FORMS[kind])
    window = _Arguments(cursor, parse, subquery, kind)
    window.read()
    cursor.expect_symbol(")", hint=_FORMS[kind])
    if is_wrapped:
        cursor.expect_symbol(")", hint="Close TABLE( with a second parenthesis.")
    return window.checked(at)


def _kind(cursor: TokenCursor) -> WindowKind:
    word = cursor.token.text.upper()
    for kind in WindowKind:
        if cursor.accept_words(kind.value):
            return kind
    raise cursor.unexpected(
        "TUMBLE, HOP, CUMULATE or SESSION",
        hint=suggestion(
            word[:40], WindowKind, "Window functions are TUMBLE, HOP, CUMULATE and SESSION."
        ),
    )


class _Arguments:
    """The arguments of a window function, by position or by name."""

    def __init__(
        self,
        cursor: TokenCursor,
        parse: Callable[[], Node],
        subquery: Callable[[], Relation],
        kind: WindowKind,
    ) -> None:
        self._cursor, self._parse, self._subquery, self._kind = cursor, parse, subquery, kind
        self._data: Relation | None = None
        self._partition: tuple[Node, ...] = ()
        self._time: Reference | None = None
        self._intervals: dict[str, Node] = {}

    def read(self) -> None:
        names: list[str] = []
        named = False
        while True:
            at = self._cursor.at
            name = self._named()
            named = named or name is not None
            if name is None:
                name = self._next(names, named=named)
            if name in names:
                raise self._error(at, f"argument {name} is given twice")
            names.append(name)
            if name == "DATA":
                self._read_table()
            elif name == "TIMECOL":
                cursor = self._cursor
                cursor.expect_words("DESCRIPTOR", hint=_FORMS[self._kind])
                cursor.expect_symbol("(", hint=_FORMS[self._kind])
                column = cursor.name("a column name", hint=_FORMS[self._kind])
                self._time = Reference((column,), column.at)
                cursor.expect_symbol(")", hint="DESCRIPTOR takes one column: the time.")
            else:
                self._intervals[name] = self._parse()
            if not self._cursor.accept_symbol(","):
                return

    def checked(self, at: int) -> tuple[Relation, WindowNode]:
        needed = [name for name in _PARAMETERS[self._kind] if name != "OFFSET"][2:]
        missing = [name for name in needed if name not in self._intervals]
        if self._data is None or self._time is None or missing:
            raise self._error(at, f"{self._kind} has not all of its arguments")
        window = WindowNode(self._kind, self._time, self._intervals, self._partition, at)
        return self._data, window

    def _named(self) -> str | None:
        cursor = self._cursor
        follows = cursor.ahead(1)
        if follows.text != "=>":
            return None
        name = cursor.token.text.upper()
        if name not in _PARAMETERS[self._kind]:
            known = _PARAMETERS[self._kind]
            otherwise = "Arguments are " + ", ".join(known) + "."
            raise cursor.unexpected("an argument", hint=suggestion(name[:40], known, otherwise))
        cursor.advance()
        cursor.advance()
        return name

    def _next(self, names: list[str], *, named: bool) -> str:
        parameters = _PARAMETERS[self._kind]
        if named or len(names) >= len(parameters):
            what = "an argument without a name" if named else "too many arguments"
            raise self._error(self._cursor.at, f"{self._kind} has {what}")
        return parameters[len(names)]

    def _read_table(self) -> None:
        cursor = self._cursor
        if not cursor.at_symbol("("):
            cursor.expect_words("TABLE", hint=_FORMS[self._kind])
        if cursor.at_symbol("("):
            self._data = self._subquery()
        else:
            table = read_table(cursor, "a table name", hint=_FORMS[self._kind])
            self._data = Relation(table, table, read_hint(cursor))
        if cursor.at_words("PARTITION", "BY"):
            if self._kind is not WindowKind.SESSION:
                raise self._error(
                    cursor.at,
                    f"{self._kind} has no PARTITION BY",
                    hint="Put the columns into GROUP BY.",
                )
            self._read_partition()

    def _read_partition(self) -> None:
        cursor = self._cursor
        cursor.accept_words("PARTITION", "BY")
        is_list = cursor.accept_symbol("(")
        keys = [self._parse()]
        while (is_list or not self._is_argument()) and cursor.accept_symbol(","):
            keys.append(self._parse())
        if is_list:
            cursor.expect_symbol(")", hint=_FORMS[WindowKind.SESSION])
        self._partition = tuple(keys)

    def _is_argument(self) -> bool:
        after, then = self._cursor.ahead(1), self._cursor.ahead(2)
        return then.text == "=>" or (after.text.upper() == "DESCRIPTOR" and then.text == "(")

    def _error(self, at: int, message: str, hint: str = "") -> Exception:
        return self._cursor.script.error(at, message, hint=hint or _FORMS[self._kind])
