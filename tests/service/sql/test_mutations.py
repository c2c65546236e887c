"""Damaged forms of all scripts that can be planned, and what becomes of them.

The law: a script is planned, and then every option, function and connector of the plan is on a list
of what is allowed; or it is refused with a position. Nothing else ever comes out.
"""

import dataclasses
import random
import re
from enum import Enum

import pytest

from joins.kernels.expressions.evaluate import FUNCTIONS as EVALUATED
from joins.plan.connections import OF_STORES, STORE_CREDENTIALS, STORE_PATH, is_in_store
from joins.plan.plan import (
    BlackholeSink,
    DatagenSource,
    DeltaSink,
    DeltaTableSource,
    FileSource,
    KafkaOptions,
    KafkaSink,
    KafkaSource,
    MysqlCdcSource,
    PolledSource,
    PrintSink,
    TableStream,
    TopicSource,
)
from joins.plan.table_patterns import TablePattern, why_unusable
from joins.plan.types import Call
from service.jobs.store import plan_codec
from service.sql.catalog.kafka_options import CLIENT_OPTIONS as KAFKA_OPTIONS
from service.sql.catalog.kafka_options import PROPERTY
from service.sql.catalog.settings import SETTINGS
from service.sql.planner.planner import plan_script
from service.sql.text.script import SqlError
from tests.service.sql.test_cases import PLANNED
from tests.service.sql.test_hostile import CORPUS
from tests.support.lanes import some_of

SCRIPTS = list(PLANNED.values())
PARTS = 24
MUTATIONS_A_PART = 60
ISOLATION_LEVELS = {"read_committed", "read_uncommitted"}
SASL = {"sasl.mechanism", "sasl.username", "sasl.password"}
GROUP = {"group.id", "auto.offset.reset", "commit.offsets.on.checkpoint"}
CLIENT_OPTIONS = {option.key.removeprefix(PROPERTY) for option in KAFKA_OPTIONS}
CLIENT_OPTIONS |= {"isolation.level", *SASL, *GROUP}
PROTOCOLS = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}
MECHANISMS = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}
TOPIC = re.compile(r"(?!sluice\.)[A-Za-z0-9._-]+")
REFERENCES = ("username", "password", "user_info", "ca", "cert", "key")
OUTSIDE = (
    *(MysqlCdcSource, TableStream, PolledSource, KafkaSource, DatagenSource),
    *(DeltaTableSource, TopicSource, FileSource),
)
SINKS = (DeltaSink, KafkaSink, PrintSink, BlackholeSink)
LEXEME = re.compile(r"'(?:[^']|'')*'|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+|\s+|.", re.DOTALL)
HOSTILE = sorted({word for row in CORPUS.values() for text in row for word in LEXEME.findall(text)})
STRANGE = (
    *("\u00a0", "\u2028", "\u200b", "\ufeff", "\u202e", "\u0130", "\uff07", "\u2019", "\x85"),
    *("\x00", "\ud800", "\U0001f4a9", "\u0660", "\u00e9", "e\u0301", "\t", "\r", "\x0b"),
)
JOINTS = (
    *("--\n", "/* */", "/*+ OPTIONS('path'='/etc') */", "/*", "*/", "-- ", "/* /* */", "'", "''"),
    *("`", "``", '"', ";", ";;", "(", ")", "${env:HOME}", "${secret:x}", "\\", "?", "@", "$", "{{"),
)
WIDE = str.maketrans({chr(n): chr(n + 0xFEE0) for n in range(ord("!"), ord("~"))})


def mutated(pick, script):
    """`script` with one to five things done to its tokens."""
    tokens = LEXEME.findall(script)
    for _ in range(pick.randint(1, 5)):
        at, other = pick.randrange(len(tokens)), pick.randrange(len(tokens))
        token = tokens[at]
        actions = {
            "delete": lambda token=token: [],
            "duplicate": lambda token=token: [token, token],
            "insert hostile": lambda token=token: [token, " ", pick.choice(HOSTILE), " "],
            "replace hostile": lambda: [pick.choice(HOSTILE)],
            "replace own": lambda other=other: [tokens[other]],
            "joint": lambda token=token: [token, pick.choice(JOINTS)],
            "case": lambda token=token: ["".join(pick.choice((c.upper, c.lower))() for c in token)],
            "strange": lambda token=token: [token[:1] + pick.choice(STRANGE) + token[1:]],
            "wide": lambda token=token: [token.translate(WIDE)],
            "value": lambda token=token: [quoted(pick) if token[:1] == "'" else token],
            "nest": lambda token=token: [f"/*{token}*/"] if pick.random() < 0.5 else [f"({token})"],
        }
        action = pick.choice(["swap", *actions])
        if action == "swap":
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at : at + 1] = actions[action]() or [""]
    return "".join(tokens)


def quoted(pick):
    words = ("connector", "path", "properties.sasl.jaas.config", "../x", "/etc", "com.evil.X", "")
    hostile = pick.choice([word for word in HOSTILE if word[0] == "'"])
    return pick.choice((hostile, f"'{pick.choice(words)}'", f"'{pick.choice(STRANGE)}'"))


def parts_of(value):
    """`value` and every dataclass in it."""
    if dataclasses.is_dataclass(value):
        yield value
        for field in dataclasses.fields(value):
            yield from parts_of(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from parts_of(item)


def texts_of(value):
    """Every text of an option in a source or a sink."""
    for part in parts_of(value):
        for field in dataclasses.fields(part):
            found = getattr(part, field.name)
            if isinstance(found, str) and not isinstance(found, Enum):
                yield field.name, found


def check_store(path, options):
    assert not options or is_in_store(path)
    assert {key for key, _ in options} <= set(OF_STORES)
    secrets = (value for key, value in options if key in STORE_CREDENTIALS)
    assert all(re.fullmatch(r"\$\{secret:[\w.-]+\}", value) for value in secrets)


def is_path(path):
    local = re.fullmatch(r"(file:///)?[\w=+,@./-]+", path, re.ASCII)
    return local is not None or re.fullmatch(STORE_PATH, path) is not None


def check_names(source):
    """Of one table; or two expressions, which are never a part of a statement."""
    pattern = TablePattern(source.database, source.table)
    if isinstance(source, PolledSource) or pattern.is_one:
        assert re.fullmatch(r"[^`*/\\]+", source.table + source.database)
        return
    assert re.fullmatch(r"[^`/;\x00-\x1f\x7f]+", source.table + source.database)
    assert why_unusable(source.database) is None
    assert why_unusable(source.table) is None
    assert not any(map(pattern.has_database, ("mysql", "SYS", "information_schema")))
    assert {item.key for item in source.metadata} & {"database_name", "table_name"}


def check_allowed(plan):
    ends = [plan.probe.source, *(d.source for d in plan.dimensions)]
    assert all(isinstance(source, OUTSIDE) for source in ends)
    assert isinstance(plan.sink, SINKS)
    assert {key for key, _ in plan.settings} <= set(SETTINGS)
    late = plan.probe.late_records_path
    assert late is None or is_path(late)
    check_store(late or "", plan.probe.late_store)
    assert late is None or ".." not in late.split("/")
    assert {part.function for part in parts_of(plan) if isinstance(part, Call)} <= set(EVALUATED)
    for part in parts_of(plan):
        if isinstance(part, KafkaOptions):
            check_kafka(part)
        if isinstance(part, KafkaSource | KafkaSink | TopicSource):
            check_topics(part)
        if isinstance(part, DeltaSink | DeltaTableSource | FileSource):
            assert ".." not in part.path.split("/")
            assert is_path(part.path)
            check_store(part.path, getattr(part, "store", ()))
        if isinstance(part, MysqlCdcSource | PolledSource):
            assert re.fullmatch(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]", part.hostname, re.ASCII)
            check_names(part)
    for end in (*ends, plan.sink):
        for name, text in texts_of(end):
            reference = name in REFERENCES
            assert "${" not in text or (reference and re.fullmatch(r"\$\{secret:[\w.-]+\}", text))


def check_topics(end):
    """A stream reads the topics of a list, or those that a pattern names while it runs."""
    topics = [end.kafka.topic, *getattr(end, "more_topics", ())]
    if pattern := getattr(end, "topic_pattern", None):
        assert topics == [""]
        re.compile(pattern)
    else:
        assert all(map(TOPIC.fullmatch, topics))


def check_kafka(kafka):
    properties = dict(kafka.properties)
    assert set(properties) <= CLIENT_OPTIONS
    assert properties.get("security.protocol", "SSL") in PROTOCOLS
    assert properties.get("sasl.mechanism", "PLAIN") in MECHANISMS
    assert properties.get("isolation.level", "read_committed") in ISOLATION_LEVELS
    assert re.fullmatch(r"[A-Za-z0-9_.:,\[\]-]+", kafka.bootstrap_servers)
    for value in properties.values():
        assert "${" not in value or re.fullmatch(r"\$\{secret:[\w.-]+\}", value)


def plan_or_refusal(script):
    """The checked plan; None where the script was refused as it must be."""
    try:
        planned = plan_script(script)
    except SqlError as error:
        refusal = error
    else:
        check_allowed(planned.plan)
        assert plan_codec.load(plan_codec.dump(planned.plan)) == planned.plan
        return planned
    assert refusal.hint
    assert refusal.message.startswith(f"line {refusal.line}, column {refusal.column}: ")
    assert 1 <= refusal.line <= script.count("\n") + 1
    assert 1 <= refusal.column <= len(script.split("\n")[refusal.line - 1]) + 1
    return None


@pytest.mark.parametrize("seed", some_of(range(PARTS), *range(6)))
def test_a_mutated_script_is_refused_or_its_plan_is_within_what_is_allowed(seed):
    pick = random.Random(seed)
    for _ in range(MUTATIONS_A_PART):
        plan_or_refusal(mutated(pick, pick.choice(SCRIPTS)))


@pytest.mark.parametrize("part", some_of(range(PARTS), *range(3)))
def test_the_law_is_met_by_scripts_that_are_planned(part):
    assert all(plan_or_refusal(script) for script in SCRIPTS[part::PARTS])


def test_some_mutations_are_planned():
    pick = random.Random(1)
    found = [plan_or_refusal(mutated(pick, pick.choice(SCRIPTS))) for _ in range(200)]
    assert 3 < len([planned for planned in found if planned]) < 197
