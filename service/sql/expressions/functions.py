"""Functions and operators of the language: arguments and results.

`joins.kernels.expressions.evaluate` computes them by the name in `call`. A function is absent if
it is not deterministic, reads files, or has no bound on its cost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from joins.plan.types import SqlType, TypeName, array_type, map_type
from service.sql.grammar.type_parser import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INSTANTS,
    INT,
    INTEGERS,
    NUMERIC,
    STRING,
    TEMPORAL,
)
from service.sql.text.script import OUTSIDE


class Takes(Enum):
    """What a function accepts as one argument."""

    TEXT = auto()
    BYTES = auto()
    TEXT_OR_BYTES = auto()
    WHOLE = auto()
    LONG = auto()
    NUMBER = auto()
    CONDITION = auto()
    CALENDAR = auto()
    CLOCK = auto()
    TIME = auto()
    MOMENT = auto()
    ANYTHING = auto()


ACCEPTED: dict[Takes, tuple[frozenset[TypeName], str]] = {
    Takes.TEXT: (frozenset((TypeName.STRING,)), "STRING"),
    Takes.BYTES: (frozenset((TypeName.BYTES,)), "BYTES"),
    Takes.TEXT_OR_BYTES: (frozenset((TypeName.STRING, TypeName.BYTES)), "STRING or BYTES"),
    Takes.WHOLE: (INTEGERS - {TypeName.BIGINT}, "INT"),
    Takes.LONG: (INTEGERS, "BIGINT"),
    Takes.NUMBER: (NUMERIC, "a number"),
    Takes.CONDITION: (frozenset((TypeName.BOOLEAN,)), "BOOLEAN"),
    Takes.CALENDAR: (TEMPORAL - {TypeName.TIME}, "DATE or TIMESTAMP"),
    Takes.CLOCK: (TEMPORAL - {TypeName.DATE}, "TIME or TIMESTAMP"),
    Takes.TIME: (TEMPORAL, "DATE, TIME or TIMESTAMP"),
    Takes.MOMENT: (INSTANTS, "TIMESTAMP"),
    Takes.ANYTHING: (frozenset(TypeName), "a value"),
}

Result = Callable[[Sequence[SqlType]], SqlType]


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function.

    Attributes:
        takes: per argument; the last `optional` ones may be left out.
        repeats: the last argument may come any number of times.
        result: result type by the types of the cast arguments.
        common: all arguments are first cast to one common type.
        call: the name in the plan.
        null_free: the result is never NULL, even for NULL arguments.
        may_be_null: the result may be NULL even without NULL arguments.
    """

    takes: tuple[Takes, ...]
    result: Result
    call: str
    optional: int = 0
    repeats: bool = False
    common: bool = False
    null_free: bool = False
    may_be_null: bool = False


def fixed(sql_type: SqlType) -> Result:
    return lambda _: sql_type


def first(types: Sequence[SqlType]) -> SqlType:
    return types[0]


def _sign_of(types: Sequence[SqlType]) -> SqlType:
    """The argument's type; a DECIMAL without digits before the point gets one."""
    kind = types[0]
    whole = kind.name is not TypeName.DECIMAL or kind.scale < kind.precision
    return kind if whole else replace(kind, precision=min(kind.precision + 1, 38))


def text(
    call: str, *takes: Takes, optional: int = 0, repeats: bool = False, may_be_null: bool = False
) -> Function:
    return Function(takes, fixed(STRING), call, optional, repeats, may_be_null=may_be_null)


_ELSEWHERE = (
    f"{OUTSIDE} Its value would differ when a batch is repeated; compute it in the producer."
)
SAME_AS: dict[str, str] = {
    "LCASE": "LOWER",
    "LEN": "CHAR_LENGTH",
    "LENGTH": "CHAR_LENGTH",
    "NVL": "COALESCE",
    "UCASE": "UPPER",
}
"""Functions of other systems, and those that do the same in Flink."""
_WINDOW_CALLS = (
    "TUMBLE TUMBLE_START TUMBLE_END TUMBLE_ROWTIME TUMBLE_PROCTIME HOP HOP_START HOP_END "
    "HOP_ROWTIME HOP_PROCTIME SESSION SESSION_START SESSION_END SESSION_ROWTIME SESSION_PROCTIME"
)
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("BITMAP_BUILD", "BITMAP_CARDINALITY", "BITMAP_FROM_BYTES", "BITMAP_TO_BYTES"),
        f"{OUTSIDE} There is no BITMAP; keep its bytes as BYTES, and count them behind the output.",
    ),
    **dict.fromkeys(
        ("OBJECT_OF", "OBJECT_UPDATE"), "There are no structured types; write ROW(a, b)."
    ),
    "DATEDIFF": "Write TIMESTAMPDIFF(DAY, first, second).",
    **{name: f"Use {other}." for name, other in SAME_AS.items()},
    "UUID": _ELSEWHERE,
    "PARSE_JSON": "Use JSON_VALUE or JSON_QUERY on the text; there is no VARIANT.",
    "TRY_PARSE_JSON": "Use JSON_VALUE or JSON_QUERY on the text; there is no VARIANT.",
    "CURRENT_WATERMARK": f"{OUTSIDE} The status of the job shows its watermarks.",
    "SOURCE_WATERMARK": "Write an expression, such as ts - INTERVAL '5' SECOND.",
    "CURRENT_DATABASE": "A job has no catalogs or databases; write its name as a text.",
    **dict.fromkeys(
        _WINDOW_CALLS.split(),
        "TUMBLE(ts, size) stands in GROUP BY, TUMBLE_START(ts, size) beside it with the same "
        "arguments; so do HOP and SESSION.",
    ),
    **dict.fromkeys(
        ("GROUPING", "GROUPING_ID", "GROUP_ID"),
        "It takes keys of GROUP BY: SELECT GROUPING(k) FROM TABLE(TUMBLE(…)) "
        "GROUP BY window_start, window_end, k.",
    ),
    **dict.fromkeys(
        ("COLLECT", "STDDEV_POP", "STDDEV_SAMP", "VAR_POP",
         "VAR_SAMP", "ARRAY_AGG", "JSON_OBJECTAGG", "JSON_ARRAYAGG", "PERCENTILE"),
        f"{OUTSIDE} Aggregates are COUNT, SUM, MIN, MAX, AVG, LISTAGG, FIRST_VALUE and LAST_VALUE.",
    ),
}  # fmt: skip


_C, _A = Takes.CONDITION, Takes.ANYTHING
BASICS: dict[str, Function] = {
    "AND": Function((_C, _C), fixed(BOOLEAN), "AND", repeats=True),
    "OR": Function((_C, _C), fixed(BOOLEAN), "OR", repeats=True),
    "NOT": Function((_C,), fixed(BOOLEAN), "NOT"),
    "IS NULL": Function((_A,), fixed(BOOLEAN), "IS NULL", null_free=True),
    "IS NOT NULL": Function((_A,), fixed(BOOLEAN), "IS NOT NULL", null_free=True),
    **{
        f"IS {negated}{word}": Function(
            (_C,), fixed(BOOLEAN), f"IS {negated}{word}", null_free=True
        )
        for negated in ("", "NOT ")
        for word in ("TRUE", "FALSE")
    },
    "IS UNKNOWN": Function((_C,), fixed(BOOLEAN), "IS NULL", null_free=True),
    "IS NOT UNKNOWN": Function((_C,), fixed(BOOLEAN), "IS NOT NULL", null_free=True),
    "IN": Function((_A, _A), fixed(BOOLEAN), "IN", repeats=True, common=True),
    "COALESCE": Function((_A,), first, "COALESCE", repeats=True, common=True),
    "IFNULL": Function((_A, _A), first, "COALESCE", common=True),
    "GREATEST": Function((_A,), first, "GREATEST", repeats=True, common=True),
    "LEAST": Function((_A,), first, "LEAST", repeats=True, common=True),
}


_N, _W = Takes.NUMBER, Takes.WHOLE
_REAL = ("EXP", "LN", "LOG10", "LOG2", "SIN", "COS", "TAN", "COT", "ASIN", "ACOS", "ATAN", "SINH",
         "COSH", "TANH", "DEGREES", "RADIANS", "SQRT")  # fmt: skip


def _without_scale(types: Sequence[SqlType]) -> SqlType:
    operand = types[0]
    if operand.name is TypeName.DECIMAL:
        return SqlType(TypeName.DECIMAL, operand.precision, 0)
    return operand


NUMBERS: dict[str, Function] = {
    "NEG": Function((_N,), first, "NEG"),
    "ABS": Function((_N,), first, "ABS"),
    "CEIL": Function((_N,), _without_scale, "CEIL"),
    "CEILING": Function((_N,), _without_scale, "CEIL"),
    "FLOOR": Function((_N,), _without_scale, "FLOOR"),
    "ROUND": Function((_N, _W), first, "ROUND", optional=1),
    "TRUNCATE": Function((_N, _W), first, "TRUNCATE", optional=1),
    "SIGN": Function((_N,), _sign_of, "SIGN"),
    **{name: Function((_N,), fixed(DOUBLE), name) for name in _REAL},
    "POWER": Function((_N, _N), fixed(DOUBLE), "POWER"),
    "ATAN2": Function((_N, _N), fixed(DOUBLE), "ATAN2"),
    "LOG": Function((_N, _N), fixed(DOUBLE), "LOG", optional=1),
    "BIN": text("BIN", Takes.LONG),
}
TO_DOUBLE = frozenset((*_REAL, "POWER", "ATAN2", "LOG"))


_CALENDAR, _CLOCK = Takes.CALENDAR, Takes.CLOCK
TIMES: dict[str, Function] = {
    **{
        name: Function((_CALENDAR,), fixed(BIGINT), name)
        for name in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR")
    },
    **{name: Function((_CLOCK,), fixed(BIGINT), name) for name in ("HOUR", "MINUTE", "SECOND")},
}
EXTRACTED: dict[str, Function] = {
    **TIMES,
    **{
        name: Function((_CALENDAR,), fixed(BIGINT), name)
        for name in ("MILLENNIUM", "CENTURY", "DECADE", "ISOYEAR", "ISODOW")
    },
    **{
        name: Function((_CLOCK,), fixed(BIGINT), name)
        for name in ("MILLISECOND", "MICROSECOND", "NANOSECOND")
    },
    "EPOCH": Function((Takes.TIME,), fixed(BIGINT), "EPOCH"),
}


_T, _L, _X = Takes.TEXT, Takes.LONG, Takes.TEXT_OR_BYTES
_TEXTS = array_type(STRING)


def _counted(call: str, *takes: Takes, may_be_null: bool = False) -> Function:
    return Function(takes, fixed(INT), call, may_be_null=may_be_null)


def _tested(call: str, *takes: Takes, optional: int = 0, null_free: bool = False) -> Function:
    return Function(takes, fixed(BOOLEAN), call, optional, null_free=null_free)


TEXTS: dict[str, Function] = {
    "LIKE": _tested("LIKE", _T, _T, _T, optional=1),
    "SIMILAR": _tested("SIMILAR", _T, _T, _T, optional=1),
    "UPPER": text("UPPER", _T),
    "LOWER": text("LOWER", _T),
    "INITCAP": text("INITCAP", _T),
    "TRIM": text("TRIM", _T, _T, optional=1),
    "BTRIM": text("TRIM", _T, _T, optional=1),
    "LTRIM": text("LTRIM", _T, _T, optional=1),
    "RTRIM": text("RTRIM", _T, _T, optional=1),
    "CHAR_LENGTH": _counted("CHAR_LENGTH", _T),
    "CHARACTER_LENGTH": _counted("CHAR_LENGTH", _T),
    "SUBSTRING": text("SUBSTRING", _T, _W, _W, optional=1),
    "SUBSTR": text("SUBSTRING", _T, _W, _W, optional=1),
    "OVERLAY": text("OVERLAY", _T, _T, _W, _W, optional=1),
    "CONCAT": text("CONCAT", _T, repeats=True),
    "||": text("CONCAT", _T, _T, repeats=True),
    "CONCAT_WS": text("CONCAT_WS", _T, _T, repeats=True),
    "REPLACE": text("REPLACE", _T, _T, _T),
    "TRANSLATE": text("TRANSLATE", _T, _T, _T),
    "REPEAT": text("REPEAT", _T, _W),
    "LPAD": text("LPAD", _T, _W, _T),
    "RPAD": text("RPAD", _T, _W, _T),
    "POSITION": _counted("POSITION", _T, _T),
    "REVERSE": text("REVERSE", _T),
    "LEFT": text("LEFT", _T, _W),
    "RIGHT": text("RIGHT", _T, _W),
    "STARTSWITH": _tested("STARTSWITH", _X, _X),
    "ENDSWITH": _tested("ENDSWITH", _X, _X),
    "ASCII": _counted("ASCII", _T),
    "CHR": text("CHR", _L),
    "SPLIT": Function((_T, _T), fixed(_TEXTS), "SPLIT"),
    "STR_TO_MAP": Function((_T, _T, _T), fixed(map_type(STRING)), "STR_TO_MAP", 2),
    "IS_DECIMAL": _tested("IS_DECIMAL", _T, null_free=True),
    "IS_DIGIT": _tested("IS_DIGIT", _T, null_free=True),
    "IS_ALPHA": _tested("IS_ALPHA", _T, null_free=True),
    "HASH_CODE": _counted("HASH_CODE", _T),
    "REGEXP": _tested("REGEXP", _T, _T),
    "REGEXP_REPLACE": text("REGEXP_REPLACE", _T, _T, _T, may_be_null=True),
    "REGEXP_EXTRACT": text("REGEXP_EXTRACT", _T, _T, _W, optional=1, may_be_null=True),
    "REGEXP_EXTRACT_ALL": Function(
        (_T, _T, _W), fixed(_TEXTS), "REGEXP_EXTRACT_ALL", 1, may_be_null=True
    ),
    "REGEXP_COUNT": _counted("REGEXP_COUNT", _T, _T, may_be_null=True),
    "REGEXP_INSTR": _counted("REGEXP_INSTR", _T, _T, may_be_null=True),
    "REGEXP_SUBSTR": text("REGEXP_SUBSTR", _T, _T, may_be_null=True),
    "MD5": text("MD5", _X),
    "SHA1": text("SHA1", _X),
    **{name: text(name, _X) for name in ("SHA224", "SHA256", "SHA384", "SHA512")},
    "SHA2": text("SHA2", _X, _W),
    "TO_BASE64": text("TO_BASE64", _X),
    "FROM_BASE64": text("FROM_BASE64", _X),
    "UNHEX": Function((_T,), fixed(BYTES), "UNHEX", may_be_null=True),
    "ENCODE": Function((_T, _T), fixed(BYTES), "ENCODE"),
    "DECODE": text("DECODE", Takes.BYTES, _T),
    "URL_ENCODE": text("URL_ENCODE", _T),
    "URL_DECODE": text("URL_DECODE", _T, may_be_null=True),
    "URL_DECODE_RECURSIVE": text("URL_DECODE_RECURSIVE", _T, _W, optional=1, may_be_null=True),
    "PARSE_URL": text("PARSE_URL", _T, _T, _T, optional=1, may_be_null=True),
    "JSON_QUOTE": text("JSON_QUOTE", _T),
    "JSON_UNQUOTE": text("JSON_UNQUOTE", _T),
}

FUNCTIONS: dict[str, Function] = {**BASICS, **TEXTS, **NUMBERS, **TIMES}
PADDING = frozenset(("LPAD", "RPAD"))
MAX_PADDED_LENGTH = 65_536
COMPARISONS = frozenset(
    ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
)
ARITHMETIC = frozenset(["+", "-", "*", "/", "%"])
