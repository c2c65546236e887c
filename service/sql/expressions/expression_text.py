"""A plan's expression as one line of text."""

from joins.plan.plan import WINDOW
from joins.plan.types import Call, Case, Cast, Column, Constant, Expression, ProcTime, TypeName
from service.sql.grammar.type_parser import TEMPORAL, type_text

FORMS: dict[str, dict[str, str]] = {
    "Text, compared": {
        "CHAR_LENGTH": "(text)",
        "CHARACTER_LENGTH": "(text)",
        "ENDSWITH": "(text, end)",
        "INSTR": "(text, part[, start[, occurrence]])",
        "IS_ALPHA": "(text)",
        "IS_DECIMAL": "(text)",
        "IS_DIGIT": "(text)",
        "LOCATE": "(part, text[, start])",
        "POSITION": "(part IN text)",
        "STARTSWITH": "(text, start)",
    },
    "Text, cut": {
        "BTRIM": "(text[, characters])",
        "ELT": "(index, text, …)",
        "LEFT": "(text, length)",
        "LTRIM": "(text[, characters])",
        "RIGHT": "(text, length)",
        "RTRIM": "(text[, characters])",
        "SPLIT": "(text, delimiter)",
        "SPLIT_INDEX": "(text, delimiter, index)",
        "SUBSTR": "(text, from[, length])",
        "SUBSTRING": "(text FROM from [FOR length])",
        "TRIM": "([[BOTH|LEADING|TRAILING] characters FROM] text)",
    },
    "Text, made": {
        "ASCII": "(text)",
        "CHR": "(code)",
        "CONCAT": "(text, …)",
        "CONCAT_WS": "(separator, text, …)",
        "INITCAP": "(text)",
        "LOWER": "(text)",
        "LPAD": "(text, length, padding)",
        "OVERLAY": "(text PLACING new FROM from [FOR length])",
        "PRINTF": "(format, x, …)",
        "REPEAT": "(text, count)",
        "REPLACE": "(text, old, new)",
        "REVERSE": "(text)",
        "RPAD": "(text, length, padding)",
        "STR_TO_MAP": "(text[, between_pairs[, inside]])",
        "TRANSLATE": "(text, from, to)",
        "UPPER": "(text)",
    },
    "Regular expressions": {
        "REGEXP": "(text, regex)",
        "REGEXP_COUNT": "(text, regex)",
        "REGEXP_EXTRACT": "(text, regex[, group])",
        "REGEXP_EXTRACT_ALL": "(text, regex[, group])",
        "REGEXP_INSTR": "(text, regex)",
        "REGEXP_REPLACE": "(text, regex, new)",
        "REGEXP_SUBSTR": "(text, regex)",
    },
    "Encodings": {
        "DECODE": "(bytes, charset)",
        "ENCODE": "(text, charset)",
        "FROM_BASE64": "(text)",
        "HEX": "(number_or_text)",
        "PARSE_URL": "(url, part[, key])",
        "TO_BASE64": "(text)",
        "UNHEX": "(text)",
        "URL_DECODE": "(text)",
        "URL_DECODE_RECURSIVE": "(text[, most])",
        "URL_ENCODE": "(text)",
    },
    "Digests": {
        "HASH_CODE": "(text)",
        "MD5": "(text)",
        "SHA1": "(text)",
        "SHA2": "(text, bits)",
        "SHA224": "(text)",
        "SHA256": "(text)",
        "SHA384": "(text)",
        "SHA512": "(text)",
    },
    "JSON": {
        "JSON": "(text)",
        "JSON_ARRAY": "(x, … [NULL|ABSENT ON NULL])",
        "JSON_EXISTS": "(text, path [TRUE|FALSE|UNKNOWN|ERROR ON ERROR])",
        "JSON_LENGTH": "(text[, path])",
        "JSON_OBJECT": "([KEY] key VALUE x, … [NULL|ABSENT ON NULL])",
        "JSON_QUERY": "(text, path [RETURNING type] [wrapper] [… ON EMPTY] [… ON ERROR])",
        "JSON_QUOTE": "(text)",
        "JSON_STRING": "(x)",
        "JSON_UNQUOTE": "(text)",
        "JSON_VALUE": "(text, path [RETURNING type] [… ON EMPTY] [… ON ERROR])",
    },
    "Numbers": {
        "ABS": "(x)",
        "BIN": "(x)",
        "CEIL": "(x)",
        "CEILING": "(x)",
        "E": "()",
        "EXP": "(x)",
        "FLOOR": "(x)",
        "LN": "(x)",
        "LOG": "([base, ]x)",
        "LOG10": "(x)",
        "LOG2": "(x)",
        "MOD": "(x, y)",
        "PI": "()",
        "POWER": "(x, y)",
        "RAND": "(seed)",
        "RAND_INTEGER": "(seed, bound)",
        "ROUND": "(x[, digits])",
        "SIGN": "(x)",
        "SQRT": "(x)",
        "TRUNCATE": "(x[, digits])",
    },
    "Angles": {
        name: "(y, x)" if name == "ATAN2" else "(x)"
        for name in (
            *("ACOS", "ASIN", "ATAN", "ATAN2", "COS", "COSH", "COT", "DEGREES", "RADIANS"),
            *("SIN", "SINH", "TAN", "TANH"),
        )
    },
    "Times": {
        "CONVERT_TZ": "(text, zone, other_zone)",
        "CURRENT_DATE": "",
        "CURRENT_ROW_TIMESTAMP": "()",
        "CURRENT_TIME": "",
        "CURRENT_TIMESTAMP": "",
        "DATE_FORMAT": "(time_or_text, pattern)",
        "EXTRACT": "(part FROM time)",
        "FROM_UNIXTIME": "(seconds[, pattern])",
        "LOCALTIME": "",
        "LOCALTIMESTAMP": "",
        "NOW": "()",
        "PROCTIME": "()",
        "TIMESTAMPADD": "(unit, count, time)",
        "TIMESTAMPDIFF": "(unit, first, second)",
        "TO_DATE": "(text[, pattern])",
        "TO_TIMESTAMP": "(text[, pattern])",
        "TO_TIMESTAMP_LTZ": "(epoch[, 0|3])",
        "UNIX_TIMESTAMP": "([text[, pattern]])",
    },
    "Parts of dates": {
        "DAYOFMONTH": "(date)",
        "DAYOFWEEK": "(date)",
        "DAYOFYEAR": "(date)",
        "MONTH": "(date)",
        "QUARTER": "(date)",
        "WEEK": "(date)",
        "YEAR": "(date)",
    },
    "Parts of times": {"HOUR": "(time)", "MINUTE": "(time)", "SECOND": "(time)"},
    "Arrays": {
        "ARRAY_APPEND": "(array, x)",
        "ARRAY_CONCAT": "(array, …)",
        "ARRAY_CONTAINS": "(array, x)",
        "ARRAY_DISTINCT": "(array)",
        "ARRAY_EXCEPT": "(array, other)",
        "ARRAY_INTERSECT": "(array, other)",
        "ARRAY_JOIN": "(array, separator[, null_text])",
        "ARRAY_MAX": "(array)",
        "ARRAY_MIN": "(array)",
        "ARRAY_POSITION": "(array, x)",
        "ARRAY_PREPEND": "(array, x)",
        "ARRAY_REMOVE": "(array, x)",
        "ARRAY_REVERSE": "(array)",
        "ARRAY_SLICE": "(array, from[, to])",
        "ARRAY_SORT": "(array[, ascending[, nulls_first]])",
        "ARRAY_UNION": "(array, other)",
        "CARDINALITY": "(array_or_map)",
        "ELEMENT": "(array)",
    },
    "Maps": {
        "MAP_ENTRIES": "(map)",
        "MAP_FROM_ARRAYS": "(keys, values)",
        "MAP_KEYS": "(map)",
        "MAP_UNION": "(map, …)",
        "MAP_VALUES": "(map)",
    },
    "Choice, casts and types": {
        "CASE": " WHEN condition THEN x … [ELSE y] END",
        "CAST": "(x AS type)",
        "COALESCE": "(x, …)",
        "GREATEST": "(x, …)",
        "IF": "(condition, x, y)",
        "IFNULL": "(x, y)",
        "LEAST": "(x, …)",
        "NULLIF": "(x, y)",
        "TRY_CAST": "(x AS type)",
        "TYPEOF": "(x)",
    },
}
NAMES = tuple(sorted(name for forms in FORMS.values() for name in forms))
PARTLY: dict[str, str] = {
    "ARRAY_MAX": "not of rows, arrays, maps or BOOLEAN, which have no order; ARRAY_MIN, ARRAY_SORT "
    "alike",
    "CURRENT_TIMESTAMP": "the batch's time, as is that of all functions of now: one for all its "
    "records, and the same when it is repeated",
    "DATE_FORMAT": "letters of patterns are y u M L d D H h K k m s S a E, in functions of texts X "
    "and Z too, of TIMESTAMP e Q q n A; no eras, week years and names of zones; to read by "
    "yy is a year from 2000, and not possible in TO_DATE and UNIX_TIMESTAMP",
    "JSON_VALUE": "paths are literals, without filters and without functions but length(); "
    "JSON_QUERY, JSON_EXISTS and JSON_LENGTH alike; RETURNING takes STRING, BOOLEAN, INT and "
    "DOUBLE, as JSON of just that form: 1 RETURNING DOUBLE is a dead letter, where a "
    "job of Flink fails, so write CAST(JSON_VALUE(…) AS DOUBLE)",
    "LPAD": "its length is a literal of 65,536 at the most; RPAD alike",
    "PRINTF": "formats are b c d e f o s x and their capitals",
    "RAND": "with a seed that is no literal: it gives the first number of that seed; RAND_INTEGER "
    "alike",
    "REGEXP": "RE2 matches, in linear time: without looking ahead or back, possessive repetition, "
    "references to groups, and (?i) beyond ASCII; with $ a row fails whose text ends with a line "
    "break; all functions of regular expressions and SIMILAR TO alike",
    "REPLACE": "a text may become 256 times as long",
    "ROUND": "of a DECIMAL to a literal number of digits; TRUNCATE alike",
}


_INFIX = frozenset(
    (
        "IS DISTINCT FROM",
        "IS NOT DISTINCT FROM",
        *["+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "LIKE"],
    )
)
_PARTS = frozenset((".", "[]"))
_POSTFIX = frozenset(("IS NULL", "IS NOT NULL"))


def expression_text(expression: Expression) -> str:
    """An expression in one line; a literal shows its type unless it is the usual one."""
    if isinstance(expression, Column):
        if expression.relation in ("", WINDOW):
            return expression.name
        return f"{expression.relation}.{expression.name}"
    if isinstance(expression, Constant):
        return _constant(expression)
    if isinstance(expression, ProcTime):
        return "PROCTIME()"
    if isinstance(expression, Cast):
        name = "TRY_CAST" if expression.safe else "CAST"
        return f"{name}({expression_text(expression.operand)} AS {type_text(expression.type)})"
    if isinstance(expression, Case):
        return _case(expression)
    return _call(expression)


def _constant(constant: Constant) -> str:
    if constant.value is None:
        return f"NULL:{type_text(constant.type)}"
    if constant.type.name is TypeName.STRING:
        return "'" + constant.value.replace("'", "''") + "'"
    if constant.type.name in (TypeName.INT, TypeName.BOOLEAN):
        return constant.value
    return f"{constant.value}:{type_text(constant.type)}"


def _case(case: Case) -> str:
    parts = [
        f"WHEN {expression_text(condition)} THEN {expression_text(value)}"
        for condition, value in case.branches
    ]
    if case.otherwise is not None:
        parts.append(f"ELSE {expression_text(case.otherwise)}")
    return "CASE " + " ".join(parts) + " END"


def _call(call: Call) -> str:
    arguments = [expression_text(argument) for argument in call.arguments]
    if (interval := _interval(call)) is not None:
        return f"({arguments[0]} {interval})"
    if call.function in _INFIX and len(arguments) == 2:
        text = f"({arguments[0]} {call.function} {arguments[1]})"
    elif call.function in _PARTS:
        text = _part(call.function, arguments[0], call.arguments[1], arguments[1])
    elif call.function in ("ARRAY", "MAP"):
        text = f"{call.function}[{', '.join(arguments)}]"
    elif call.function in _POSTFIX:
        text = f"({arguments[0]} {call.function})"
    else:
        text = f"{call.function}({', '.join(arguments)})"
    return f"{text}:{call.type}" if call.type.name is TypeName.DECIMAL else text


def _part(function: str, whole: str, named: Expression, text: str) -> str:
    if function == "[]":
        return f"{whole}[{text}]"
    assert isinstance(named, Constant), "a field is known when the script is planned"
    return f"{whole}.{named.value}"


def _interval(call: Call) -> str | None:
    """The interval that a call adds to or subtracts from a time; None for other calls."""
    size = call.arguments[-1] if call.arguments else None
    if call.type.name not in TEMPORAL or not isinstance(size, Constant) or size.value is None:
        return None
    if call.function == "ADD_MONTHS":
        sign = "-" if size.value.startswith("-") else "+"
        return f"{sign} INTERVAL '{size.value.lstrip('-')}' MONTH"
    if call.function not in ("+", "-"):
        return None
    seconds, rest = divmod(int(size.value), 1_000)
    fraction = f".{rest:03}".rstrip("0") if rest else ""
    return f"{call.function} INTERVAL '{seconds}{fraction}' SECOND"
