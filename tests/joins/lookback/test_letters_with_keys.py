"""Dead letters of records whose keys and headers are read: they are kept, and read again."""

from dataclasses import replace

import pyarrow as pa
from deltalake import DeltaTable

from joins.kernels.records.layout import MORE_OF_A_RECORD
from joins.plan.formats import RecordKey
from joins.plan.plan import Field, MetadataField, OutputColumn
from joins.plan.types import Column, SqlType, TypeName, map_type
from tests.support.letters import BATCHES, LetterJob, request
from tests.support.probe import PLAN, STRING, clicks

HEADERS = map_type(SqlType(TypeName.BYTES))
PROBE = PLAN.probe
KEYED = replace(
    PLAN,
    probe=replace(
        PROBE,
        source=replace(PROBE.source, key=RecordKey(("user_id",), is_in_value=False)),
        fields=(*PROBE.fields, Field("note", STRING)),
        metadata_fields=(
            MetadataField("h", "headers", HEADERS),
            MetadataField("epoch", "leader-epoch", SqlType(TypeName.INT)),
            MetadataField("stamped", "timestamp-type", STRING),
            MetadataField("raw", "key", SqlType(TypeName.BYTES)),
        ),
    ),
    output=(
        *PLAN.output,
        OutputColumn("note", Column("c", "note", STRING)),
        OutputColumn("h", Column("c", "h", HEADERS)),
        OutputColumn("epoch", Column("c", "epoch", SqlType(TypeName.INT))),
        OutputColumn("stamped", Column("c", "stamped", STRING)),
        OutputColumn("raw", Column("c", "raw", SqlType(TypeName.BYTES))),
    ),
)


def keyed(*values, first):
    """Records whose key names user 1, or for an odd offset is broken."""
    batch, offsets = clicks(*values, first=first), range(first, first + len(values))
    more = {
        "key": [b'{"user_id":1}' if at % 2 == 0 else b"?" for at in offsets],
        "headers": [[("at", str(at).encode()), ("none", None)] for at in offsets],
        "leader-epoch": [None if at == 100 else 7 for at in offsets],
        "timestamp-type": ["CreateTime" for _ in offsets],
    }
    for item in MORE_OF_A_RECORD:
        batch = batch.append_column(item.name, pa.array(more[item.name], item.type))
    return batch


def test_a_corrected_value_meets_the_key_and_the_headers_of_its_record(tmp_path):
    values = [b'{"note":"a"}', b'{"note":"b"}', b"x", b"y"]
    job = LetterJob(tmp_path, KEYED, {7: (1, values), 8: BATCHES[8]}, keyed).make()
    letters = job.letters.page().letters
    assert [(letter.offset, letter.reason) for letter in letters[:3]] == [
        (101, "key: the value is not one JSON object"),
        (102, "the value is not one JSON object"),
        (103, "the value is not one JSON object"),
    ]
    assert letters[1].more == {
        "key": b'{"user_id":1}',
        "headers": [("at", b"102"), ("none", None)],
        "leader-epoch": 7,
        "timestamp-type": "CreateTime",
    }
    corrected = [{"partition": 0, "offset": at, "value": '{"note":"c"}'} for at in (101, 102)]
    result = job.replay().handle(request({"records": corrected}))
    assert result["rows"] == 1
    assert [bad["reason"] for bad in result["still_bad"]] == [
        "key: the value is not one JSON object"
    ]
    rows = DeltaTable(str(job.output)).to_pyarrow_table().sort_by("_offset").to_pylist()
    shown = [(r["_offset"], r["name"], r["note"], dict(r["h"]), r["epoch"], r["raw"]) for r in rows]
    assert shown[:2] == [
        (100, "r5", "a", {"at": b"100", "none": None}, None, b'{"user_id":1}'),
        (102, "r5", "c", {"at": b"102", "none": None}, 7, b'{"user_id":1}'),
    ]
    assert {row["stamped"] for row in rows} == {"CreateTime"}
