"""The functions and operators that a script may use: deny by default.

Each has a name, what it takes and what it gives; `joins.kernels.expressions.evaluate` computes
them under the name in `call`. Whatever is not in `FUNCTIONS` is refused: other functions are often
not deterministic, read files or have no bound on their cost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from joins.plan.types import SqlType, TypeName
from service.sql.grammar.type_rules import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INSTANTS,
    INT,
    INTEGERS,
    NUMERIC,
    PROCTIME,
    STRING,
    TEMPORAL,
)


class Takes(Enum):
    """What a function accepts in one place."""

    TEXT = auto()
    WHOLE = auto()
    EPOCH = auto()
    NUMBER = auto()
    CONDITION = auto()
    CALENDAR = auto()
    CLOCK = auto()
    MOMENT = auto()
    ANYTHING = auto()


ACCEPTED: dict[Takes, tuple[frozenset[TypeName], str]] = {
    Takes.TEXT: (frozenset((TypeName.STRING,)), "STRING"),
    Takes.WHOLE: (INTEGERS - {TypeName.BIGINT}, "INT"),
    Takes.EPOCH: (INTEGERS, "BIGINT"),
    Takes.NUMBER: (NUMERIC, "a number"),
    Takes.CONDITION: (frozenset((TypeName.BOOLEAN,)), "BOOLEAN"),
    Takes.CALENDAR: (TEMPORAL - {TypeName.TIME}, "DATE or TIMESTAMP"),
    Takes.CLOCK: (TEMPORAL - {TypeName.DATE}, "TIME or TIMESTAMP"),
    Takes.MOMENT: (INSTANTS, "TIMESTAMP"),
    Takes.ANYTHING: (frozenset(TypeName), "a value"),
}

Result = Callable[[Sequence[SqlType]], SqlType]


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function.

    Attributes:
        takes: of each argument; the last `optional` ones may be left out.
        repeats: the last argument may come any number of times.
        result: the result's type by the arguments' types, after they were cast.
        common: all arguments are first cast to one common type.
        call: the name in the plan.
        null_free: the result is never NULL, whatever the arguments are.
    """

    takes: tuple[Takes, ...]
    result: Result
    call: str
    optional: int = 0
    repeats: bool = False
    common: bool = False
    null_free: bool = False


def _fixed(sql_type: SqlType) -> Result:
    return lambda _: sql_type


def _first(types: Sequence[SqlType]) -> SqlType:
    return types[0]


def _without_scale(types: Sequence[SqlType]) -> SqlType:
    operand = types[0]
    if operand.name is TypeName.DECIMAL:
        return SqlType(TypeName.DECIMAL, operand.precision, 0)
    return operand


_T, _W, _N, _C = Takes.TEXT, Takes.WHOLE, Takes.NUMBER, Takes.CONDITION
_A = Takes.ANYTHING


def _text(call: str, *takes: Takes, optional: int = 0, repeats: bool = False) -> Function:
    return Function(takes, _fixed(STRING), call, optional, repeats)


FUNCTIONS: dict[str, Function] = {
    "AND": Function((_C, _C), _fixed(BOOLEAN), "AND", repeats=True),
    "OR": Function((_C, _C), _fixed(BOOLEAN), "OR", repeats=True),
    "NOT": Function((_C,), _fixed(BOOLEAN), "NOT"),
    "IS NULL": Function((_A,), _fixed(BOOLEAN), "IS NULL", null_free=True),
    "IS NOT NULL": Function((_A,), _fixed(BOOLEAN), "IS NOT NULL", null_free=True),
    **{
        f"IS {negated}{word}": Function(
            (_C,), _fixed(BOOLEAN), f"IS {negated}{word}", null_free=True
        )
        for negated in ("", "NOT ")
        for word in ("TRUE", "FALSE")
    },
    "IS UNKNOWN": Function((_C,), _fixed(BOOLEAN), "IS NULL", null_free=True),
    "IS NOT UNKNOWN": Function((_C,), _fixed(BOOLEAN), "IS NOT NULL", null_free=True),
    "LIKE": Function((_T, _T, _T), _fixed(BOOLEAN), "LIKE", optional=1),
    "IN": Function((_A, _A), _fixed(BOOLEAN), "IN", repeats=True, common=True),
    "NEG": Function((_N,), _first, "NEG"),
    "COALESCE": Function((_A,), _first, "COALESCE", repeats=True, common=True),
    "IFNULL": Function((_A, _A), _first, "COALESCE", common=True),
    "GREATEST": Function((_A,), _first, "GREATEST", repeats=True, common=True),
    "LEAST": Function((_A,), _first, "LEAST", repeats=True, common=True),
    "UPPER": _text("UPPER", _T),
    "LOWER": _text("LOWER", _T),
    "TRIM": _text("TRIM", _T, _T, optional=1),
    "LTRIM": _text("LTRIM", _T, _T, optional=1),
    "RTRIM": _text("RTRIM", _T, _T, optional=1),
    "CHAR_LENGTH": Function((_T,), _fixed(INT), "CHAR_LENGTH"),
    "CHARACTER_LENGTH": Function((_T,), _fixed(INT), "CHAR_LENGTH"),
    "SUBSTRING": _text("SUBSTRING", _T, _W, _W, optional=1),
    "SUBSTR": _text("SUBSTRING", _T, _W, _W, optional=1),
    "CONCAT": _text("CONCAT", _T, repeats=True),
    "||": _text("CONCAT", _T, _T, repeats=True),
    "CONCAT_WS": _text("CONCAT_WS", _T, _T, repeats=True),
    "REPLACE": _text("REPLACE", _T, _T, _T),
    "LPAD": _text("LPAD", _T, _W, _T),
    "RPAD": _text("RPAD", _T, _W, _T),
    "POSITION": Function((_T, _T), _fixed(INT), "POSITION"),
    "LOCATE": Function((_T, _T), _fixed(INT), "POSITION"),
    "REVERSE": _text("REVERSE", _T),
    "LEFT": _text("LEFT", _T, _W),
    "RIGHT": _text("RIGHT", _T, _W),
    "STARTSWITH": Function((_T, _T), _fixed(BOOLEAN), "STARTSWITH"),
    "ENDSWITH": Function((_T, _T), _fixed(BOOLEAN), "ENDSWITH"),
    "ABS": Function((_N,), _first, "ABS"),
    "CEIL": Function((_N,), _without_scale, "CEIL"),
    "CEILING": Function((_N,), _without_scale, "CEIL"),
    "FLOOR": Function((_N,), _without_scale, "FLOOR"),
    "ROUND": Function((_N, _W), _first, "ROUND", optional=1),
    "SIGN": Function((_N,), _first, "SIGN"),
    "SQRT": Function((_N,), _fixed(DOUBLE), "SQRT"),
    "POWER": Function((_N, _N), _fixed(DOUBLE), "POWER"),
    "YEAR": Function((Takes.CALENDAR,), _fixed(BIGINT), "YEAR"),
    "MONTH": Function((Takes.CALENDAR,), _fixed(BIGINT), "MONTH"),
    "DAYOFMONTH": Function((Takes.CALENDAR,), _fixed(BIGINT), "DAYOFMONTH"),
    **{
        name: Function((Takes.CALENDAR,), _fixed(BIGINT), name)
        for name in ("QUARTER", "WEEK", "DAYOFWEEK", "DAYOFYEAR")
    },
    "TO_TIMESTAMP_LTZ": Function((Takes.EPOCH, _W), _fixed(PROCTIME), "TO_TIMESTAMP_LTZ", 1),
    "DATE_FORMAT": _text("DATE_FORMAT", Takes.MOMENT, _T),
    "HOUR": Function((Takes.CLOCK,), _fixed(BIGINT), "HOUR"),
    "MINUTE": Function((Takes.CLOCK,), _fixed(BIGINT), "MINUTE"),
    "SECOND": Function((Takes.CLOCK,), _fixed(BIGINT), "SECOND"),
}
NESTED = ("ARRAY_CONTAINS", "ARRAY_JOIN", "CARDINALITY", "MAP_KEYS", "MAP_VALUES")
TO_DOUBLE = frozenset(("SQRT", "POWER"))
PADDING = frozenset(("LPAD", "RPAD"))
MAX_PADDED_LENGTH = 65_536
COMPARISONS = frozenset(
    ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
)
ARITHMETIC = frozenset(["+", "-", "*", "/", "%"])
CALLS = (
    frozenset(function.call for function in FUNCTIONS.values())
    | COMPARISONS
    | ARITHMETIC
    | {"NULLIF", "ADD_MONTHS", "WINDOW_START", ".", "[]", "ROW", "ARRAY", "MAP", *NESTED}
)
NAMES = tuple(
    sorted(
        {name for name in FUNCTIONS if name[0].isalpha() and " " not in name}
        - {"AND", "OR", "NOT", "IN", "LIKE", "NEG"}
        | {"IF", "INSTR", "NULLIF", "MOD", "PROCTIME", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP"}
        | {"CASE", "CAST", "TRY_CAST", "EXTRACT", *NESTED}
    )
)
_MORE_OF_FLINK = """
ACOS ASCII ASIN ATAN ATAN2 BIN CHR COS COT DECODE DEGREES ELT ENCODE EXP FROM_BASE64 HEX INITCAP LN
LOG LOG10 LOG2 MD5 OVERLAY PARSE_URL PI RADIANS SHA1 SHA2 SHA224 SHA256 SHA384 SHA512 SIN STR_TO_MAP
TAN TO_BASE64 TRANSLATE UNHEX URL_DECODE URL_ENCODE
"""
_ELSEWHERE = "Compute it in the producer, or behind the output."
_WINDOW_CALLS = (
    "TUMBLE TUMBLE_START TUMBLE_END TUMBLE_ROWTIME TUMBLE_PROCTIME HOP HOP_START HOP_END "
    "HOP_ROWTIME HOP_PROCTIME SESSION SESSION_START SESSION_END SESSION_ROWTIME SESSION_PROCTIME"
)
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        _WINDOW_CALLS.split(),
        "TUMBLE(ts, size) stands in GROUP BY, TUMBLE_START(ts, size) beside it with the same "
        "arguments; HOP and SESSION likewise.",
    ),
    **dict.fromkeys(_MORE_OF_FLINK.split(), _ELSEWHERE),
    **dict.fromkeys(
        ("JSON_EXISTS", "JSON_QUERY", "JSON_VALUE", "JSON_OBJECT", "JSON_ARRAY"),
        "Declare the column as ROW<name TYPE, …> and read column.name; ROW(a, b) makes an object.",
    ),
    "BTRIM": "Use TRIM(BOTH 'x' FROM text).",
    "CONVERT_TZ": "All times are in UTC: add an INTERVAL, or convert behind the output.",
    "DATEDIFF": "Keep both times, and subtract them behind the output.",
    "FROM_UNIXTIME": "Use DATE_FORMAT(TO_TIMESTAMP_LTZ(x, 0), 'yyyy-MM-dd HH:mm:ss').",
    "LCASE": "Use LOWER.",
    "LEN": "Use CHAR_LENGTH.",
    "LENGTH": "Use CHAR_LENGTH.",
    "NVL": "Use COALESCE.",
    "SPLIT": "Use SUBSTRING with POSITION, or have the producer send an ARRAY.",
    "SPLIT_INDEX": "Use SUBSTRING with POSITION, or have the producer send an ARRAY.",
    "TRUNCATE": "Use FLOOR, CEIL or ROUND.",
    "UCASE": "Use UPPER.",
    "RAND": "Its value would differ when a batch is repeated; compute it in the producer.",
    "RAND_INTEGER": "Its value would differ when a batch is repeated; compute it in the producer.",
    "UUID": "Its value would differ when a batch is repeated; compute it in the producer.",
    "NOW": "Use CURRENT_TIMESTAMP, which is the micro-batch's pinned time.",
    "CURRENT_ROW_TIMESTAMP": "Use CURRENT_TIMESTAMP, which is the micro-batch's pinned time.",
    "UNIX_TIMESTAMP": "Use CURRENT_TIMESTAMP, which is the micro-batch's pinned time.",
    "CURRENT_DATE": "Use CAST(CURRENT_TIMESTAMP AS DATE).",
    "CURRENT_TIME": "Use CAST(CURRENT_TIMESTAMP AS TIME).",
    "LOCALTIME": "Use CAST(LOCALTIMESTAMP AS TIME).",
    "TO_TIMESTAMP": "Use TRY_CAST(x AS TIMESTAMP(3)), which is NULL for what is no time; it reads "
    "2024-02-29 13:04:05.678 and 2024-02-29T13:04:05.678. Of milliseconds: TO_TIMESTAMP_LTZ(x, 3).",
    "TO_DATE": "Use TRY_CAST(x AS DATE), which is NULL for what is no date; it reads 2024-02-29.",
    "TIMESTAMPADD": "Write x + INTERVAL '5' SECOND.",
    "TIMESTAMPDIFF": "Keep both times, and subtract them downstream.",
    "CURRENT_WATERMARK": "The job's status shows its watermarks; late records go to a table.",
    "SOURCE_WATERMARK": "Write an expression, such as ts - INTERVAL '5' SECOND.",
    "REGEXP": "Use LIKE, STARTSWITH or POSITION; regular expressions have no bound on their cost.",
    "REGEXP_REPLACE": "Use REPLACE; regular expressions have no bound on their cost.",
    "REGEXP_EXTRACT": "Use SUBSTRING; regular expressions have no bound on their cost.",
    "REPEAT": "Use RPAD with a length.",
    **dict.fromkeys(
        ("TUMBLE", "HOP", "SESSION"),
        "Write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) and GROUP BY "
        "window_start, window_end.",
    ),
    **dict.fromkeys(
        (
            "FIRST_VALUE",
            "LAST_VALUE",
            "COLLECT",
            "STDDEV_POP",
            "STDDEV_SAMP",
            "VAR_POP",
            "VAR_SAMP",
        ),
        "Aggregates are COUNT, SUM, MIN, MAX, AVG and LISTAGG.",
    ),
}
