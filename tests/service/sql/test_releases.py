"""Every option of the connectors of Flink and Flink CDC: used, accepted with a warning, refused.

The files of `releases` have the options of a release, a line each, and what becomes of them.
"""

from pathlib import Path

import pytest

from service.sql.catalog.connectors import CONNECTORS
from service.sql.catalog.option_values import declared_option
from service.sql.planner.planner import plan_script
from service.sql.text.script import SqlError

RELEASES = Path(__file__).with_name("releases")
COLUMNS = "id BIGINT, k_x STRING, ts TIMESTAMP(3)"
STREAM = f"CREATE TABLE s ({COLUMNS}, p AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ({{}});"
DIMENSION = f"CREATE TABLE d ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) WITH ({{}});"
PLAIN = {
    "connector": "kafka",
    "topic": "s",
    "properties.bootstrap.servers": "b:1",
    "format": "json",
    "scan.startup.mode": "earliest-offset",
}
BASES = {
    "kafka": PLAIN,
    "mysql-cdc": {
        "connector": "mysql-cdc",
        "hostname": "db",
        "username": "u",
        "password": "${secret:x}",
        "database-name": "shop",
        "table-name": "d",
    },
    "mysql": {
        "connector": "mysql",
        "hostname": "db",
        "username": "u",
        "password": "${secret:x}",
        "database-name": "shop",
        "table-name": "d",
    },
    "jdbc": {
        "connector": "jdbc",
        "url": "jdbc:mysql://db:3306/shop",
        "table-name": "d",
        "username": "u",
        "password": "${secret:x}",
    },
    "filesystem": {"connector": "filesystem", "path": "/d", "format": "csv"},
    "upsert-kafka": {
        "connector": "upsert-kafka",
        "topic": "d",
        "properties.bootstrap.servers": "b:1",
        "key.format": "json",
        "value.format": "json",
    },
}
# what else an option needs, and what it replaces
BESIDE = {
    "scan.startup.mode = group-offsets": {"properties.group.id": "g"},
    "scan.startup.mode = timestamp": {"scan.startup.timestamp-millis": "1"},
    "scan.startup.mode = specific-offsets": {
        "scan.startup.specific-offsets": "partition:0,offset:1"
    },
    "key.format = json": {"key.fields": "id"},
    "key.fields = id": {"key.format": "json"},
    "key.fields-prefix = k_": {
        "key.fields": "k_x",
        "key.format": "json",
        "value.fields-include": "EXCEPT_KEY",
    },
    "value.fields-include = ALL": {"key.fields": "id", "key.format": "json"},
}
INSTEAD = {"topic-pattern": "topic", "value.format": "format"}


def cases():
    for path in sorted(RELEASES.glob("*.txt")):
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                setting, _, fate = line.rpartition(" | ")
                yield path.stem, setting, fate


CASES = list(cases())


def script(connector, setting):
    key, _, value = setting.partition(" = ")
    options = {**BASES[connector], **BESIDE.get(setting, {}), key: value}
    if connector == "upsert-kafka":
        options.pop("key.fields", None)
        if key == "key.fields-prefix":
            options["value.fields-include"] = "EXCEPT_KEY"
    options.pop(INSTEAD.get(key, "") if connector == "kafka" else "", None)
    written = ", ".join(f"'{each}' = '{text}'" for each, text in options.items())
    if connector == "kafka":
        return STREAM.format(written) + "SELECT id FROM s;"
    plain = ", ".join(f"'{each}' = '{text}'" for each, text in PLAIN.items())
    key = "k_x" if "prefix" in setting else "id"
    table = DIMENSION.format(written).replace("KEY (id)", f"KEY ({key})")
    return (
        STREAM.format(plain) + table + "SELECT s.id FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p "
        f"ON s.{key} = d.{key};"
    )


def about(warnings, key):
    return [text for text in warnings if text.startswith(f'Option "{key}"')]


ACCEPTED = [case for case in CASES if case[2] != "refused"]
REFUSED = [case for case in CASES if case[2] == "refused"]


@pytest.mark.parametrize(("connector", "setting", "fate"), ACCEPTED, ids=map(" ".join, ACCEPTED))
def test_option_of_a_release_is_accepted(connector, setting, fate):
    key = setting.partition(" = ")[0]
    warnings = plan_script(script(connector, setting)).warnings
    assert fate == ("accepted" if about(warnings, key) else "used"), warnings
    assert len(about(warnings, key)) <= 1


@pytest.mark.parametrize(("connector", "setting", "fate"), REFUSED, ids=map(" ".join, REFUSED))
def test_option_of_a_release_that_changes_the_results_is_refused(connector, setting, fate):
    with pytest.raises(SqlError) as caught:
        plan_script(script(connector, setting))
    assert f'"{setting.partition(" = ")[0]}"' in caught.value.message
    assert caught.value.edit is not None


def test_each_option_without_effect_says_what_is_there_instead():
    for connector in CONNECTORS.values():
        options = {option.key: option for option in connector.options}
        assert len(options) == len(connector.options), connector.name
        for option in connector.options:
            assert option.instead == option.instead.strip().rstrip(".")
            assert declared_option(options, option.key.replace("*", "x")) is not None
