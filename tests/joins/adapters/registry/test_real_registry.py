"""Our client and a real registry: what is registered once is found again, and what it refuses."""

import json

import httpx
import pytest

from joins.adapters.registry import SchemaRegistry, shared_schemas
from joins.plan.connections import RegistryOptions
from joins.plan.errors import SourceError
from tests.support.apicurio import ApicurioRegistry
from tests.support.topics import unique_name


def schema_of(kind: str) -> str:
    return json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind, "default": 0}]}
    )


def test_a_schema_is_registered_once_and_read_by_its_number(registry: ApicurioRegistry) -> None:
    subject, options = unique_name("a/b-"), RegistryOptions(registry.url)
    with SchemaRegistry(options) as one, SchemaRegistry(options) as other:
        number = one.number_of(subject, schema_of("int"))
        assert other.number_of(subject, schema_of("int")) == number
        assert other.number_of(unique_name("other"), schema_of("int")) == number
        assert other.number_of(subject, schema_of("long")) != number
        assert json.loads(str(other.avro_schema(number))) == json.loads(schema_of("int"))
        assert json.loads(str(one.newest_avro_schema(subject))) == json.loads(schema_of("long"))
        assert one.avro_schema(2**31 - 1) is None
    assert shared_schemas(options)(2**31 - 1) is None


def test_a_schema_that_breaks_the_subjects_rules_is_refused(registry: ApicurioRegistry) -> None:
    subject = unique_name("t")
    with SchemaRegistry(RegistryOptions(registry.url)) as schemas:
        schemas.number_of(subject, schema_of("int"))
        rule = {"compatibility": "FULL"}
        httpx.put(f"{registry.url}/config/{subject}", json=rule).raise_for_status()
        with pytest.raises(SourceError, match="does not take the schema of") as refused:
            schemas.number_of(subject, schema_of("string").replace("0", '"0"'))
        assert "another subject" in refused.value.hint
        with pytest.raises(SourceError, match="does not take the schema of"):
            schemas.number_of(subject, '{"type": "record"}')
