"""Functions of text and bytes."""

from joins.plan.types import array_type, map_type
from service.sql.expressions.library.function import Function, Takes, fixed, text
from service.sql.grammar.type_rules import BOOLEAN, BYTES, INT, STRING

_T, _W, _L, _X = Takes.TEXT, Takes.WHOLE, Takes.LONG, Takes.TEXT_OR_BYTES
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
