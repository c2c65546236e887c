"""Values as JSON: exact for every type, and read back as what they were."""

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from joins.kernels.json.exact import json_values, typed_values
from joins.plan.types import SqlType, TypeName, arrow_type

DAY = 86_400_000_000
SHOWN = {
    "boolean": (SqlType(TypeName.BOOLEAN), True, True),
    "largest_bigint": (SqlType(TypeName.BIGINT), 2**63 - 1, 9223372036854775807),
    "float_by_its_own_digits": (SqlType(TypeName.FLOAT), 0.1, 0.1),
    "double": (SqlType(TypeName.DOUBLE), 0.1 + 0.2, 0.30000000000000004),
    "infinity": (SqlType(TypeName.DOUBLE), -math.inf, "-Infinity"),
    "no_number": (SqlType(TypeName.FLOAT), math.nan, "NaN"),
    "decimal_with_its_scale": (SqlType(TypeName.DECIMAL, 10, 2), Decimal("12.50"), "12.50"),
    "decimal_without_exponent": (
        SqlType(TypeName.DECIMAL, 38, 10),
        Decimal("1E-10"),
        "0.0000000001",
    ),
    "text": (SqlType(TypeName.STRING), 'é"\n', 'é"\n'),
    "bytes": (SqlType(TypeName.BYTES), b"\xff\x00", "/wA="),
    "date": (SqlType(TypeName.DATE), date(2026, 11, 21), "2026-11-21"),
    "time": (SqlType(TypeName.TIME, 6), 22_028_000_009, "06:07:08.000009"),
    "time_beyond_a_day": (SqlType(TypeName.TIME), -35 * DAY + 1_000_000, "-839:59:59.000000"),
    "timestamp_has_no_zone": (
        SqlType(TypeName.TIMESTAMP, 6),
        datetime(2026, 11, 21, 6, 7, 8, 9),  # noqa: DTZ001
        "2026-11-21T06:07:08.000009",
    ),
    "instant_has_one": (
        SqlType(TypeName.TIMESTAMP_LTZ, 6),
        datetime(2026, 11, 21, 6, 7, 8, tzinfo=UTC),
        "2026-11-21T06:07:08.000000Z",
    ),
}


@pytest.mark.parametrize(("kind", "value", "shown"), SHOWN.values(), ids=SHOWN)
def test_a_value_is_shown_exactly_and_read_back(kind, value, shown):
    column = pa.array([value, None], arrow_type(kind))
    told = json_values(column, kind)
    assert told == [shown, None]
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    text = shown if isinstance(shown, str) else json.dumps(shown)
    if text not in ("NaN", "-Infinity"):  # no key is one of these
        read = typed_values([text], kind)
        assert not read.failed.any()
        assert read.values.equals(column[:1])


WRONG = {
    "words_for_a_number": (SqlType(TypeName.BIGINT), "seven"),
    "number_beyond_its_type": (SqlType(TypeName.TINYINT), "128"),
    "digits_that_the_scale_lacks": (SqlType(TypeName.DECIMAL, 10, 2), "1.555"),
    "instant_without_zone": (SqlType(TypeName.TIMESTAMP_LTZ, 6), "2026-11-21T06:07:08"),
    "base64_that_is_none": (SqlType(TypeName.BYTES), "%%"),
    "time_of_61_minutes": (SqlType(TypeName.TIME), "06:61:00"),
}


@pytest.mark.parametrize(("kind", "text"), WRONG.values(), ids=WRONG)
def test_a_text_that_is_no_value_of_the_type_is_marked(kind, text):
    assert typed_values([text], kind).failed.tolist() == [True]
