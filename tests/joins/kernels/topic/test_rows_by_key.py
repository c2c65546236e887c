"""Topics of rows by key: which records are rows, and which are bad."""

import pyarrow as pa
import pytest

from joins.kernels.debezium.changes import RecordFault
from joins.kernels.formats.decoders import RecordColumns
from joins.kernels.topic.rows import KeyedRowDecoder
from joins.plan.formats import KafkaFormat, RecordFormat, RecordKey
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName

BIGINT, STRING = SqlType(TypeName.BIGINT), SqlType(TypeName.STRING)
FIELDS = (Field("id", BIGINT, nullable=False), Field("name", STRING))
JSON = RecordFormat(KafkaFormat.JSON)
ONE, ROW = b'{"id":1}', b'{"id":1,"name":"a"}'


def decoded(key, value, *, is_in_value=True):
    columns = RecordColumns(FIELDS, JSON, RecordKey(("id",), JSON, is_in_value=is_in_value))
    decoder = KeyedRowDecoder(columns, ("id",), deletes_by_null=True)
    records = {"key": [ONE, key, ONE], "value": [ROW, value, ROW]}
    arrays = {name: pa.array(values, pa.binary()) for name, values in records.items()}
    changes = decoder.decode(pa.RecordBatch.from_pydict(arrays))
    assert changes.kind.to_pylist()[::2] == ["u", "u"]
    assert changes.key.column("id").to_pylist()[::2] == [1, 1]
    return changes


SOUND = {
    "a_row": (ONE, ROW, "u", "a"),
    "a_key_in_quotes": (b'{"id":"1"}', ROW, "u", "a"),
    "an_array_of_one_row": (ONE, b'[{"id":1,"name":"b"}]', "u", "b"),
    "a_tombstone": (ONE, None, "d", None),
}
BAD = {
    "no_key": (None, ROW, "the key is null"),
    "no_key_and_no_value": (None, None, "the key is null"),
    "a_key_that_is_none": (b"x", ROW, "key: the value is not one JSON object"),
    "another_key": (b'{"id":2}', ROW, "its key is not that of its row"),
    "an_array_of_two_rows": (ONE, b'[{"id":1},{"id":1}]', "it is an array of several rows"),
    "an_array_of_no_row": (ONE, b"[]", "it has no row"),
    "an_array_of_two_keys": (b'[{"id":1},{"id":1}]', ROW, "key: it is an array of several rows"),
}


@pytest.mark.parametrize(("key", "value", "kind", "name"), SOUND.values(), ids=SOUND)
@pytest.mark.parametrize("is_in_value", [True, False])
def test_a_record_with_its_key_is_a_row(key, value, kind, name, is_in_value):
    changes = decoded(key, value, is_in_value=is_in_value)
    assert changes.bad == ()
    assert changes.kind[1].as_py() == kind
    assert changes.key.column("id")[1].as_py() == 1
    assert changes.after.column("name")[1].as_py() == name


@pytest.mark.parametrize(("key", "value", "reason"), BAD.values(), ids=BAD)
def test_a_record_without_its_key_or_its_row_is_bad(key, value, reason):
    changes = decoded(key, value)
    assert changes.kind[1].as_py() == "bad"
    (bad,) = changes.bad
    assert bad.row == 1
    assert reason in bad.reason
    assert bad.fault in (RecordFault.KEY, RecordFault.COLUMN)
