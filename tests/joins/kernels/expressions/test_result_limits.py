"""No expression makes gigabytes of a small record: limits hold before memory is taken."""

import itertools
import tracemalloc

import pyarrow as pa
import pytest

from joins.kernels.expressions import operation
from joins.kernels.expressions.operation import MAX_VALUE_BYTES
from service.sql.expressions.functions import FUNCTIONS, Takes
from service.sql.text.script import SqlError
from tests.support.expressions import arrays, evaluated, planned
from tests.support.lanes import some_of

MIB = 1 << 20
POOLS = []  # arrays must not outlive theirs
TYPES = {"a": "STRING", "b": "STRING", "n": "INT", "r": "ARRAY<STRING>", "m": "MAP<STRING, STRING>"}
TOO_MUCH = {
    "replace": ("REPLACE(a, 'x', a)", "x" * 100_000),
    "replace_nothing": ("REPLACE(a, '', a)", "x" * 100_000),
    "replace_by_two": ("REPLACE(a, 'x', 'yy')", "x" * (9 * MIB)),
    "array_join": ("ARRAY_JOIN(r, a)", "x" * 100_000),
    "array_join_of_nulls": ("ARRAY_JOIN(r, '', a)", "x" * 100_000),
    "concat": ("CONCAT(a, a)", "x" * (9 * MIB)),
    "concat_ws": ("CONCAT_WS(a, 'b', 'c', 'd')", "x" * (9 * MIB)),
    "bars": ("a || a", "x" * (9 * MIB)),
    "array": ("ARRAY[a, a]", "x" * (9 * MIB)),
    "map": ("MAP['a', a, 'b', a]", "x" * (9 * MIB)),
    "row": ("ROW(a, a)", "x" * (9 * MIB)),
    "hex": ("HEX(a)", "x" * (9 * MIB)),
    "base64": ("TO_BASE64(a)", "x" * (13 * MIB)),
    "url": ("URL_ENCODE(a)", "%" * (9 * MIB)),
    "json_quote": ("JSON_QUOTE(a)", "\x01" * (9 * MIB)),
    "json_array": ("JSON_ARRAY(a, a)", "x" * (9 * MIB)),
    "repeat": ("REPEAT(a, 20)", "x" * MIB),
    "repeat_by_column": ("REPEAT(a, n)", "x" * (9 * MIB)),
    "overlay": ("OVERLAY(a PLACING a FROM 1)", "x" * (9 * MIB)),
    "printf": ("PRINTF('%s%s', a, a)", "x" * (9 * MIB)),
    "regexp_replace": ("REGEXP_REPLACE(a, 'x', 'yy')", "x" * (9 * MIB)),
    "array_concat": ("ARRAY_CONCAT(ARRAY[a], ARRAY[a])", "x" * (9 * MIB)),
}


def row(text):
    half = [None] * 5_000
    return (text, "b", 7, [*half, *[""] * 5_000], [(str(at), "v") for at in range(2_000)])


def peak_bytes(typed, columns):
    """What was taken at the most, by Arrow and by Python, and the answer."""
    usual = pa.default_memory_pool()
    arrow = pa.proxy_memory_pool(usual)
    POOLS.append(arrow)
    tracemalloc.start()
    pa.set_memory_pool(arrow)
    try:
        answer = evaluated(typed, columns)
        return max(arrow.max_memory(), 0) + tracemalloc.get_traced_memory()[1], answer
    finally:
        pa.set_memory_pool(usual)
        tracemalloc.stop()


@pytest.mark.parametrize(("expression", "text"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_value_beyond_the_limit_fails_its_row_and_takes_no_memory(expression, text):
    columns = arrays(TYPES, [row(text), row("x")])
    peak, answer = peak_bytes(planned(expression, TYPES), columns)
    assert list(answer.errors) == [0]
    assert "MiB" in answer.errors[0]
    assert answer.values[0].as_py() is None
    assert answer.values[1].as_py() is not None
    assert peak < 4 * MAX_VALUE_BYTES


def test_values_up_to_the_limit_are_made():
    columns = arrays(TYPES, [row("x" * (MAX_VALUE_BYTES // 2))])
    answer = evaluated(planned("a || a", TYPES), columns)
    assert answer.errors == {}
    assert len(answer.values[0].as_py()) == MAX_VALUE_BYTES


@pytest.mark.parametrize("expression", ["r[1]", "m['k']"])
def test_one_long_element_takes_no_memory_for_the_other_rows(expression):
    long = "x" * MIB
    rows = [("", "", 1, [long], [("k", long)]), *[("", "", 1, [], [])] * 300]
    peak, answer = peak_bytes(planned(expression, TYPES), arrays(TYPES, rows))
    assert answer.values.to_pylist() == [long] + [None] * 300
    assert peak < 20 * MIB


def test_rows_behind_the_limit_of_a_batch_fail(monkeypatch):
    monkeypatch.setattr(operation, "MAX_COLUMN_BYTES", 1_000)
    columns = arrays(TYPES, [("x" * 100, "", 0, [], [])] * 8)
    answer = evaluated(planned("a || a", TYPES), columns)
    assert sorted(answer.errors) == [5, 6, 7]
    assert answer.values.to_pylist() == ["x" * 200] * 5 + [None] * 3


def test_padding_counts_as_many_bytes_as_it_has(monkeypatch):
    monkeypatch.setattr(operation, "MAX_COLUMN_BYTES", 1_000)
    columns = arrays(TYPES, [("é", "", 0, [], [])] * 8)
    for expression, failed in {"LPAD(a, 120, ' ')": [], "LPAD(a, 120, 'é')": [4, 5, 6, 7]}.items():
        assert sorted(evaluated(planned(expression, TYPES), columns).errors) == failed
    cut = arrays(TYPES, [("x" * 10_000, "", 0, [], [])] * 8)
    assert evaluated(planned("LPAD(a, 10, ' ')", TYPES), cut).errors == {}


def of_text():
    """Each function of a text, with a column in every place of one."""
    names = {Takes.TEXT: "ab", Takes.ANYTHING: "ab", Takes.WHOLE: "n"}
    for name, function in FUNCTIONS.items():
        if not name[0].isalpha() or " " in name or not set(function.takes) <= set(names):
            continue
        for count in range(len(function.takes) - function.optional, len(function.takes) + 1):
            given = (
                names[takes][at % len(names[takes])] for at, takes in enumerate(function.takes)
            )
            yield f"{name}({', '.join(itertools.islice(given, count))})"
    yield from ("LPAD(a, 65536, b)", "RPAD(a, 65536, b)", "a LIKE b", "a LIKE b ESCAPE '!'")
    yield from ("a || b || a", "a = b", "a IN (b, a)", "NULLIF(a, b)", "m[a]", "MAP[a, b]")
    yield from ("ARRAY_CONTAINS(r, a)", "ARRAY_JOIN(r, a)", "ARRAY_JOIN(r, a, b)", "ARRAY[a, b, a]")
    yield from (f"TRY_CAST(a AS {kind})" for kind in ("INT", "DOUBLE", "DECIMAL(38, 9)", "DATE"))
    yield from (f"TRY_CAST(a AS {kind})" for kind in ("TIME", "TIMESTAMP(3)", "BOOLEAN", "BYTES"))


def planned_of_text():
    for expression in of_text():
        try:
            yield expression, planned(expression, TYPES)
        except SqlError:
            continue


SIZE = 20_000
PAIRS = {
    f"{a[:2]} {b[:2]}": (a, b)
    for a in ("a" * SIZE, "1%" * (SIZE // 2), "ß" * SIZE)
    for b in ("a", "a_" * (SIZE // 2), "ß" * SIZE)
}


@pytest.mark.parametrize(("a", "b"), some_of(PAIRS, "aa a_", "1% a", "ßß ßß"))
def test_no_expression_takes_more_memory_than_a_multiple_of_its_record(a, b):
    expressions, found = dict(planned_of_text()), {}
    assert len(expressions) > 40
    columns = arrays(TYPES, [(a, b, 3, [None, "a"] * (SIZE // 2), [("k", "v")] * 2_000)])
    for text, typed in expressions.items():
        peak, answer = peak_bytes(typed, columns)
        made = 0 if answer.errors else answer.values.nbytes
        if peak > 60 * SIZE * 4 + 4 * made:
            found[text] = peak
    assert found == {}
