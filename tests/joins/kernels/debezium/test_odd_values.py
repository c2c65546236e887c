"""Values that few producers write, wherever they are in a record of Debezium."""

import codecs
import itertools
import json

import pyarrow as pa
import pytest

from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.debezium.options import DebeziumOptions, ValueLayout
from joins.kernels.json.each import STRICT
from joins.plan.plan import Field
from tests.joins.kernels.json.test_flink_json import READERS as JSON_READERS
from tests.joins.kernels.json.test_flink_json import SCALARS, TOKENS, read_by, same
from tests.support.expressions import sql_type
from tests.support.flink_json import FAILS

ID = Field("id", sql_type("INT"))
ODD = (
    *('"\\ud800"', '"a\\udc00b"', '"\\ud83d"', "NaN", "Infinity", "-Infinity", "1e999", "-1e999"),
    *('"a\nb"', '"\x00\x1f"', "9" * 400, "1e-99999", '{"x":["\\udfff",1e999]}', "[[[]]]", "1.0"),
)
PLACES = {
    "a_column": '{"op":"c","after":{"v":%s,"id":1,"w":%s},"source":{}}',
    "the_row_before": '{"op":"u","before":{"id":1,"v":%s,"w":%s},"after":{"id":1},"source":{}}',
    "the_envelope": '{"op":"c","z":%s,"after":{"id":1},"transaction":%s,"source":{}}',
    "the_source": '{"op":"c","after":{"id":1},"source":{"q":%s,"r":%s}}',
    "the_payload": '{"schema":null,"payload":{"op":"c","after":{"id":1,"v":%s},"z":%s,'
    '"source":{}}}',
    "a_flat_row": '{"v":%s,"id":1,"w":%s}',
}


def decoded(values, fields, layout=ValueLayout.ENVELOPE):
    keys = pa.array([b'{"id":1}'] * len(values), pa.binary())
    records = pa.RecordBatch.from_pydict({"key": keys, "value": pa.array(values, pa.binary())})
    return DebeziumDecoder(fields, ["id"], DebeziumOptions(layout=layout)).decode(records)


@pytest.mark.parametrize("place", PLACES)
def test_a_value_that_is_not_read_never_costs_the_record(place):
    pairs = list(itertools.product(ODD, ODD))
    layout = ValueLayout.FLAT if place == "a_flat_row" else ValueLayout.ENVELOPE
    values = [(PLACES[place] % pair).encode() for pair in pairs]
    changes = decoded(values, [ID], layout)
    assert [(pairs[bad.row], bad.reason) for bad in changes.bad] == []
    assert set(changes.after.column("id").to_pylist()) == {1}


def test_a_value_that_is_read_is_that_of_json_or_stalls():
    taken = 0
    for kind in SCALARS:
        tokens = [*ODD, *TOKENS]
        values = [PLACES["a_column"] % (token, "0") for token in tokens]
        changes = decoded([each.encode() for each in values], [ID, Field("v", kind)])
        bad = {each.row for each in changes.bad}
        column = changes.after.column("v").to_pylist()
        expected = read_by(JSON_READERS["one_by_one"], tokens, kind, STRICT)
        for row, token in enumerate(tokens):
            if token in ODD and ("\\ud" in token or "e999" in token or token[-1] in "yN"):
                assert row in bad, (kind, token)
            is_ours = token in ("true", "false") or isinstance(expected[row], str)
            if row not in bad and expected[row] is not FAILS and not is_ours and is_plain(kind):
                assert same(column[row], expected[row], kind), (kind, token)
                taken += 1
    assert taken > 100, taken


def is_plain(kind):
    """Types whose numbers mean the same for a connector; its times and decimals have modes."""
    return kind.name.value in ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")


@pytest.mark.parametrize("kind", ["TINYINT", "SMALLINT", "INT", "BIGINT"])
def test_integers_may_be_written_with_a_point_or_an_exponent(kind):
    tokens = {"1.0": 1, "-1.00": -1, "1e1": 10, "1E+2": 100, "150e-1": 15, "0e999": 0, "-0.0": 0}
    texts = [PLACES["a_column"] % (token, "0") for token in tokens]
    changes = decoded([text.encode() for text in texts], [ID, Field("v", sql_type(kind))])
    assert changes.bad == ()
    assert changes.after.column("v").to_pylist() == list(tokens.values())
    wrong = ["1.5", "1e-3", "1e40", "1e999", "9223372036854775808.0", "-9223372036854775809.0"]
    texts = [PLACES["a_column"] % (token, "0") for token in wrong]
    changes = decoded([text.encode() for text in texts], [ID, Field("v", sql_type(kind))])
    assert [each.row for each in changes.bad] == list(range(len(wrong)))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_record_may_be_in_any_encoding_of_json(encoding):
    text = json.dumps({"op": "c", "after": {"id": 1, "v": "é😀"}, "source": {}}, ensure_ascii=False)
    changes = decoded([codecs.encode(text, encoding)], [ID, Field("v", sql_type("STRING"))])
    assert changes.bad == ()
    assert changes.after.to_pylist() == [{"id": 1, "v": "é😀"}]


def test_an_array_is_no_change():
    changes = decoded([b'[{"op":"c","after":{"id":1},"source":{}}]'], [ID])
    assert len(changes.bad) == 1
