"""Options of a format as a script has them are the kernel's, with the same defaults."""

import pytest

from joins.adapters.topic.decoding import debezium_options
from joins.kernels.debezium.options import BigintUnsignedHandling, DebeziumOptions
from service.sql.catalog.topic_options import (
    AVRO_OPTIONS,
    DEBEZIUM_AVRO,
    DEBEZIUM_JSON,
    JSON_OPTIONS,
)

PREFIXES = {DEBEZIUM_JSON: JSON_OPTIONS, DEBEZIUM_AVRO: AVRO_OPTIONS}


@pytest.mark.parametrize(("prefix", "options"), PREFIXES.items(), ids=PREFIXES)
def test_defaults_of_a_script_are_those_of_the_kernel(prefix, options):
    defaults = {option.key.removeprefix(prefix): option.default for option in options}
    written = {key: value for key, value in defaults.items() if value is not None}
    assert debezium_options(written) == debezium_options({}) == DebeziumOptions()


def test_what_a_script_says_is_what_is_decoded_by():
    made = debezium_options(
        {"bit.columns": "a;b", "bigint.unsigned.handling.mode": "long", "schema-include": "false"}
    )
    assert made.bit_columns == {"a", "b"}
    assert made.bigint_unsigned is BigintUnsignedHandling.LONG
    assert made.schema_include is False
