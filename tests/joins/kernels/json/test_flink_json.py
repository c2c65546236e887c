"""Every type and every shape of a token, as Flink reads it, by each of our readers of JSON."""

import json
import math
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.json import rows as json_rows
from joins.kernels.json.each import STRICT, JsonRules
from joins.kernels.json.rows import json_schema, parse
from joins.plan.plan import Field
from joins.plan.types import Member, SqlType, TypeName, array_type, map_type, row_type
from tests.support.flink_json import FAILS, STRICTER, flink_reads
from tests.support.laws import examples

SCALARS = (
    *(SqlType(name) for name in (TypeName.BOOLEAN, TypeName.TINYINT, TypeName.SMALLINT)),
    *(SqlType(name) for name in (TypeName.INT, TypeName.BIGINT, TypeName.FLOAT, TypeName.DOUBLE)),
    *(SqlType(name) for name in (TypeName.STRING, TypeName.BYTES, TypeName.DATE)),
    *(SqlType(TypeName.DECIMAL, *digits) for digits in ((5, 2), (3, 3), (38, 18), (18, 0))),
    *(SqlType(TypeName.TIME, 3), SqlType(TypeName.TIMESTAMP, 6)),
    SqlType(TypeName.TIMESTAMP_LTZ, 3),
)
TYPES = (
    *SCALARS,
    *map(array_type, SCALARS[:-3]),
    *map(map_type, SCALARS[:-3]),
    *(row_type(Member("x", kind)) for kind in SCALARS if kind.name is not TypeName.TIME),
    array_type(row_type(Member("x", map_type(SqlType(TypeName.INT))))),
)
NUMBERS = (
    *("0", "-0", "1", "-1", "12", "127", "128", "-128", "-129", "32767", "32768", "2147483647"),
    *("2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    *("1.0", "-1.00", "1.5", "0.5", "1e3", "1E+3", "15e-1", "150e-1", "1e-3", "1e40", "0e999"),
    *("1e999", "-1e999", "1e-400", "1e-99999", "999.99", "999.994", "999.995", "0.0005", "0.9995"),
    *("0.1", "16777217", "0.1000000000000000055511151231257827", "9" * 40, "1." + "0" * 50),
)
TEXTS = (
    *(
        "",
        " ",
        "x",
        "true",
        "TRUE",
        " false ",
        "False",
        "yes",
        "1",
        "0",
        "12",
        " 12 ",
        "+12",
        "-12",
    ),
    *("0012", "1_000", "1.0", ".5", "5.", "1e3", "1e", "NaN", "-NaN", "Infinity", "-Infinity"),
    *("+Infinity", "inf", "1.5f", "1.5D", "0x1p3", "0x10", "12a", "null", "2024-02-29", "24-2-9"),
    *("2024-02-30", "2024-02-29 01:02:03", "2024-02-29T01:02:03.5", "2024-02-29 01:02:03.123456"),
    *("2024-02-29T01:02:03Z", " 2024-02-29", "01:02:03", "01:02:03.5", "24:00:00", "AAAA", "AA=="),
    *("AA", "A A=\n=", "-_==", "é", "\u0661\u0662", "a\tb\x01", "\u2028", "😀"),
)
TOKENS = (
    *("null", "true", "false", "[]", "{}", "[1]", "[null]", '["1",2.0,true]', '{"x":1}'),
    *('{"x":"1"}', '{"x":null,"y":[1e999]}', '{"a":{"x":[]}}', '[{"x":{"a":"7"}}]', "[[]]"),
    *('{"x":[1,"b",{"c":null}]}', '{"a":1,"a":2}', '{"x":1,"x":2}', '"\\ud800"', '"\\u0041\\n"'),
    *NUMBERS,
    *(json.dumps(text) for text in TEXTS),
    *(json.dumps(text, ensure_ascii=False) for text in TEXTS),
    *('"a\nb"', '"\x00"', '"1\x1f"', "[ 1 , 2 ]", '{ "x" : 1 }'),
)


def one_by_one(values, schema, rules):
    rows = json_rows._RowCollector(schema, rules)
    json_rows._read_left(values, np.arange(len(values)), 0, rows)
    return rows.finish()


READERS = {"all": parse, "one_by_one": one_by_one}


def read_by(reader, tokens, kind, rules):
    """What a column `v` has of each token, with members of no interest around it."""
    around = ('{"z":%s,"v":%s}', '{"v":%s,"z":%s}')
    texts = []
    for at, token in enumerate(tokens):
        other = tokens[(at * 7 + 3) % len(tokens)]
        texts.append(around[0] % (other, token) if at % 2 else around[1] % (token, other))
    values = pa.array([text.encode() for text in texts], pa.binary())
    parsed = reader(values, json_schema([Field("v", kind)]), rules)
    parsed.batch.validate(full=True)
    found = dict(zip(parsed.row_index.to_pylist(), parsed.batch.column(0).to_pylist(), strict=True))
    assert sorted([*found, *(each.row for each in parsed.bad)]) == list(range(len(tokens)))
    return [found.get(at, FAILS) for at in range(len(tokens))]


expected_of = cache(flink_reads)  # of each reader it is the same


def same(found, expected, kind):
    if kind.name is TypeName.FLOAT and isinstance(expected, float) and math.isfinite(expected):
        expected = pa.scalar(repr(expected)).cast(pa.float32()).as_py()
        if math.isinf(expected):  # what is too large for a FLOAT is stricter, too
            return found in (FAILS, None)
    if expected in (FAILS, STRICTER):
        return found == FAILS
    if kind.members and isinstance(expected, list | dict):
        return shown(found) == shown(expected)
    return found == expected or (found != found and expected != expected)


def shown(value):
    """NaN is like itself, and a FLOAT like the DOUBLE that it is of."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    return [shown(part) for part in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("ignores", [False, True], ids=["strict", "ignore_parse_errors"])
def test_each_reader_reads_a_token_as_flink_does(name, ignores):
    rules = JsonRules(ignores_errors=ignores)
    wrong = []
    for kind in TYPES:
        found = read_by(READERS[name], TOKENS, kind, rules)
        for token, value in zip(TOKENS, found, strict=True):
            expected = expected_of(token, kind, ignores_errors=ignores)
            if not same(value, expected, kind):
                wrong.append((str(kind), token, value, expected))
    assert wrong[:9] == []


@settings(max_examples=examples(300))
@given(
    st.sampled_from(TYPES),
    st.lists(
        st.one_of(
            st.sampled_from(TOKENS),
            st.integers(-(2**70), 2**70).map(str),
            st.decimals(allow_nan=False, allow_infinity=False, places=4).map("{:f}".format),
            st.floats(allow_nan=False, allow_infinity=False).map(repr),
            st.text(max_size=6).map(json.dumps),
            st.integers(-(2**33), 2**33).map('"{}"'.format),
        ),
        min_size=1,
        max_size=20,
    ),
    st.booleans(),
)
def test_drawn_tokens_are_read_as_flink_does(kind, tokens, ignores):
    rules = JsonRules(ignores_errors=ignores)
    expected = [flink_reads(token, kind, ignores_errors=ignores) for token in tokens]
    for reader in READERS.values():
        found = read_by(reader, tokens, kind, rules)
        assert [
            (token, one, other)
            for token, one, other in zip(tokens, found, expected, strict=True)
            if not same(one, other, kind)
        ] == []


def test_what_the_reader_of_debezium_takes_it_reads_alike():
    """It takes less: texts for numbers and numbers for texts are none of a connector's."""
    other = (TypeName.DECIMAL, TypeName.BOOLEAN, TypeName.DATE, TypeName.TIME, TypeName.TIMESTAMP)
    kinds = [kind for kind in SCALARS if kind.name not in (*other, TypeName.TIMESTAMP_LTZ)]
    for kind in kinds:
        is_text = kind.name is TypeName.STRING  # else true and false are a connector's TINYINT(1)
        tokens = [token for token in TOKENS if is_text or token not in ("true", "false")]
        envelope = '{"op":"c","before":null,"after":{"id":1,"v":%s},"source":{}}'
        records = pa.RecordBatch.from_pydict(
            {
                "key": pa.array([b'{"id":1}'] * len(tokens)),
                "value": pa.array([(envelope % token).encode() for token in tokens]),
            }
        )
        fields = [Field("id", SqlType(TypeName.INT)), Field("v", kind)]
        changes = DebeziumDecoder(fields, ["id"]).decode(records)
        bad = {each.row for each in changes.bad}
        assert len(bad) < len(tokens), kind
        read = zip(
            changes.after.column("v").to_pylist(), read_by(parse, tokens, kind, STRICT), strict=True
        )
        for row, (value, expected) in enumerate(read):
            assert row in bad or same(value, expected, kind), (kind, tokens[row])
