"""The functions and operators that a script may use: deny by default.

Each has a name, what it takes and what it gives; `joins.kernels.expressions.evaluate` computes
them under the name in `call`. Whatever is not here is refused: other functions are not
deterministic, read files or have no bound on their cost.
"""

from service.sql.expressions.library.basics import BASICS
from service.sql.expressions.library.function import Function
from service.sql.expressions.library.numbers import NUMBERS
from service.sql.expressions.library.texts import TEXTS
from service.sql.expressions.library.times import EXTRACTED, TIMES

FUNCTIONS: dict[str, Function] = {**BASICS, **TEXTS, **NUMBERS, **TIMES}
ARRAYS = (
    *("ARRAY_APPEND", "ARRAY_CONCAT", "ARRAY_CONTAINS", "ARRAY_DISTINCT", "ARRAY_EXCEPT"),
    *("ARRAY_INTERSECT", "ARRAY_JOIN", "ARRAY_MAX", "ARRAY_MIN", "ARRAY_POSITION"),
    *("ARRAY_PREPEND", "ARRAY_REMOVE", "ARRAY_REVERSE", "ARRAY_SLICE", "ARRAY_SORT"),
    *("ARRAY_UNION", "CARDINALITY", "ELEMENT"),
)
MAPS = ("MAP_ENTRIES", "MAP_FROM_ARRAYS", "MAP_KEYS", "MAP_UNION", "MAP_VALUES")
PADDING = frozenset(("LPAD", "RPAD"))
MAX_PADDED_LENGTH = 65_536
COMPARISONS = frozenset(
    ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
)
ARITHMETIC = frozenset(["+", "-", "*", "/", "%"])
_OF_JSON = ("JSON", "JSON_ARRAY", "JSON_EXISTS", "JSON_LENGTH", "JSON_OBJECT", "JSON_QUERY",
            "JSON_STRING", "JSON_VALUE")  # fmt: skip
_TIMES = ("CONVERT_TZ", "DATE_FORMAT", "FROM_UNIXTIME", "TIMESTAMPDIFF", "TO_DATE",
          "TO_TIMESTAMP", "TO_TIMESTAMP_LTZ", "UNIX_TIMESTAMP")  # fmt: skip
_OTHERS = ("ELT", "HEX", "INSTR", "LOCATE", "PRINTF", "RAND", "RAND_INTEGER", "SPLIT_INDEX")
CALLS = (
    frozenset(function.call for function in (*FUNCTIONS.values(), *EXTRACTED.values()))
    | COMPARISONS
    | ARITHMETIC
    | {"NULLIF", "ADD_MONTHS", "WINDOW_START", "WINDOW_PLACES"}
    | {".", "[]", "ROW", "ARRAY", "MAP", *ARRAYS, *MAPS}
    | {"CEIL_TO", "FLOOR_TO", "INTERVAL_PART", "TO_INSTANT", "FORMAT_TEXT", "IS JSON", "SIZED"}
    | {*_OF_JSON, *_TIMES, *_OTHERS, "HEX_TEXT", "SPLIT_INDEX_AT"}
)
_BARE = ("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP")
NAMES = tuple(
    sorted(
        {name for name in FUNCTIONS if name[0].isalpha() and " " not in name}
        - {"AND", "OR", "NOT", "IN", "LIKE", "SIMILAR", "NEG"}
        | {"IF", "NULLIF", "MOD", "PROCTIME", "NOW", "CURRENT_ROW_TIMESTAMP", *_BARE}
        | {"CASE", "CAST", "TRY_CAST", "EXTRACT", "TIMESTAMPADD", "TYPEOF", "PI", "E"}
        | {*ARRAYS, *MAPS, *_OF_JSON, *_TIMES, *_OTHERS}
    )
)
