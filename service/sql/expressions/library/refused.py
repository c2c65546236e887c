"""Functions that are not there, and what to write instead."""

_ELSEWHERE = "Its value would differ when a batch is repeated; compute it in the producer."
_WINDOW_CALLS = (
    "TUMBLE TUMBLE_START TUMBLE_END TUMBLE_ROWTIME TUMBLE_PROCTIME HOP HOP_START HOP_END "
    "HOP_ROWTIME HOP_PROCTIME SESSION SESSION_START SESSION_END SESSION_ROWTIME SESSION_PROCTIME"
)
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("BITMAP_BUILD", "BITMAP_CARDINALITY", "BITMAP_FROM_BYTES", "BITMAP_TO_BYTES"),
        "There is no BITMAP; keep its bytes as BYTES, and count them behind the output.",
    ),
    **dict.fromkeys(
        ("OBJECT_OF", "OBJECT_UPDATE"), "There are no structured types; write ROW(a, b)."
    ),
    "DATEDIFF": "Write TIMESTAMPDIFF(DAY, first, second).",
    "LCASE": "Use LOWER.",
    "LEN": "Use CHAR_LENGTH.",
    "LENGTH": "Use CHAR_LENGTH.",
    "NVL": "Use COALESCE.",
    "UCASE": "Use UPPER.",
    "UUID": _ELSEWHERE,
    "PARSE_JSON": "Use JSON_VALUE or JSON_QUERY on the text; there is no VARIANT.",
    "TRY_PARSE_JSON": "Use JSON_VALUE or JSON_QUERY on the text; there is no VARIANT.",
    "CURRENT_WATERMARK": "The job's status shows its watermarks; late records go to a table.",
    "SOURCE_WATERMARK": "Write an expression, such as ts - INTERVAL '5' SECOND.",
    "CURRENT_DATABASE": "A job has no catalogs or databases; write its name as a text.",
    **dict.fromkeys(
        _WINDOW_CALLS.split(),
        "TUMBLE(ts, size) stands in GROUP BY, TUMBLE_START(ts, size) beside it with the same "
        "arguments; HOP and SESSION likewise.",
    ),
    **dict.fromkeys(
        ("COLLECT", "STDDEV_POP", "STDDEV_SAMP", "VAR_POP",
         "VAR_SAMP", "ARRAY_AGG", "JSON_OBJECTAGG", "JSON_ARRAYAGG", "PERCENTILE"),
        "Aggregates are COUNT, SUM, MIN, MAX, AVG, LISTAGG, FIRST_VALUE and LAST_VALUE.",
    ),
}  # fmt: skip
