"""What may differ between two plans of a job: kinds from scripts, and every field of every plan."""

import dataclasses
import itertools
import types
import typing
from dataclasses import replace
from enum import Enum

import pytest

from joins.plan.plan import JoinPlan, KafkaSource, SharedSource, StartupMode
from joins.plan.types import SqlType, TypeName
from service.jobs.update.changes import Accepted, ChangeKind, Refused
from service.jobs.update.fields import (
    FIELDS,
    FieldPlace,
    Inner,
    Leaf,
    Listed,
    Named,
    Nothing,
    differences,
    rules_of,
)
from service.jobs.update.updates import compare, with_resolved
from service.sql.planner.planner import plan_script

K = ChangeKind
SCRIPT = """
CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector'='mysql-cdc', 'hostname'='db', 'username'='cdc', 'password'='${secret:shop}',
      'database-name'='shop', 'table-name'='users');
CREATE TABLE items (id BIGINT, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector'='mysql-cdc', 'hostname'='db', 'username'='cdc', 'password'='${secret:shop}',
      'database-name'='shop', 'table-name'='items');
CREATE TABLE clicks (user_id BIGINT, item BIGINT, note STRING, tags ARRAY<STRING>,
                     proctime AS PROCTIME(), doubled AS item * 2)
WITH ('connector'='kafka', 'topic'='clicks', 'properties.bootstrap.servers'='kafka:9092',
      'format'='json', 'scan.startup.mode'='earliest-offset');
CREATE TABLE enriched (user_id BIGINT, name STRING, item BIGINT)
WITH ('connector'='delta', 'path'='enriched');
INSERT INTO enriched
SELECT c.user_id, u.name, c.item FROM clicks AS c
LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.id
WHERE c.item > 0;
"""
PRICED = "LEFT JOIN items FOR SYSTEM_TIME AS OF c.proctime AS i ON c.item = i.id\nWHERE"
KAFKA_SINK = (
    "('connector'='kafka', 'topic'='out', 'properties.bootstrap.servers'='kafka:9092', "
    "'format'='%s')"
)
DELTA = "('connector'='delta', 'path'='enriched')"


def plan(script, **options):
    return plan_script(script, name="job", **options).plan


def edited(*edits, script=SCRIPT):
    for old, new in edits:
        assert old in script, old
        script = script.replace(old, new, 1)
    return script


ADDED = (
    (
        "item BIGINT)\nWITH ('connector'='delta'",
        "item BIGINT, extra STRING)\nWITH ('connector'='delta'",
    ),
    ("c.item FROM", "c.item, c.note FROM"),
)
DIMENSION = (
    (
        "item BIGINT)\nWITH ('connector'='delta'",
        "item BIGINT, p DECIMAL(10, 2))\nWITH ('connector'='delta'",
    ),
    ("c.item FROM", "c.item, i.price FROM"),
    ("WHERE", PRICED),
)
STREAM = "'scan.startup.mode'='earliest-offset'"
USERS = "'database-name'='shop', 'table-name'='users'"
ACCEPTED = {
    "an expression of SELECT": ([("u.name,", "UPPER(u.name),")], {K.PROJECTION}),
    "a nullable output column": (ADDED, {K.OUTPUT_ADDED}),
    "a filter": ([("c.item > 0", "c.item > 5")], {K.FILTER}),
    "a filter that goes": ([("WHERE c.item > 0", "")], {K.FILTER}),
    "a computed column": ([("item * 2", "item * 3")], {K.COMPUTED_COLUMN}),
    "a column of the stream": ([("note STRING,", "note STRING, more INT,")], {K.STREAM_COLUMNS}),
    "the type of a join": ([("LEFT JOIN", "INNER JOIN")], {K.JOIN_TYPE}),
    "a key of a join": ([("ON c.user_id =", "ON c.item =")], {K.JOIN_KEYS}),
    "a condition of a join": ([("= u.id", "= u.id AND u.name <> ''")], {K.JOIN_CONDITION}),
    "a dimension": (DIMENSION, {K.DIMENSION_ADDED, K.JOIN_ADDED, K.OUTPUT_ADDED}),
    "an unnested array": (
        [("WHERE", "CROSS JOIN UNNEST(c.tags) AS t (tag)\nWHERE")],
        {K.UNNEST},
    ),
    "records of a batch": (
        [(STREAM, STREAM + ", 'scan.max-records-per-batch'='10'")],
        {K.BATCH_SIZE},
    ),
    "the time between batches": (
        [("CREATE", "SET 'sluice.trigger-interval'='1 s'; CREATE")],
        {K.TRIGGER_INTERVAL},
    ),
    "the session's zone": (
        [("CREATE", "SET 'table.local-time-zone'='Europe/Berlin'; CREATE")],
        {K.TIME_ZONE},
    ),
    "a password": ([("${secret:shop}", "${secret:new}")], {K.CREDENTIALS}),
    "a login of Kafka": (
        [(STREAM, STREAM + ", 'properties.security.protocol'='SSL'")],
        {K.CREDENTIALS},
    ),
    "the writer of a sink": (
        [("'path'='enriched'", "'path'='enriched', 'sink.writer'='spark'")],
        {K.SINK_OPTION},
    ),
    "the name of a table in the script": (
        [("INTO enriched", "INTO written"), ("TABLE enriched", "TABLE written")],
        {K.LABEL},
    ),
}
REFUSED = {
    "an output column that goes": (
        [("name STRING, item BIGINT)", "name STRING)"), ("u.name, c.item FROM", "u.name FROM")],
        {K.OUTPUT_REMOVED},
    ),
    "the type of an output column": (
        [
            ("name STRING, item BIGINT)", "name STRING, item STRING)"),
            ("c.item FROM", "CAST(c.item AS STRING) FROM"),
        ],
        {K.OUTPUT_TYPE},
    ),
    "NOT NULL of an output column": (
        [("enriched (user_id BIGINT", "enriched (user_id BIGINT NOT NULL")],
        {K.OUTPUT_NULLABILITY},
    ),
    "an output column that is NOT NULL": (
        [(ADDED[0][0], ADDED[0][1].replace("extra STRING", "extra STRING NOT NULL")), ADDED[1]],
        {K.OUTPUT_ADDED},
    ),
    "the order of output columns": (
        [
            ("(user_id BIGINT, name STRING, item", "(name STRING, user_id BIGINT, item"),
            ("c.user_id, u.name", "u.name, c.user_id"),
        ],
        {K.OUTPUT_ORDER},
    ),
    "the topic": ([("'topic'='clicks'", "'topic'='others'")], {K.STREAM_IDENTITY}),
    "the servers": ([("kafka:9092", "other:9092")], {K.STREAM_IDENTITY}),
    "the connector of the stream": (
        [
            (
                "'kafka', 'topic'='clicks', 'properties.bootstrap.servers'='kafka:9092',\n"
                f"      'format'='json', {STREAM}",
                "'datagen'",
            )
        ],
        {K.STREAM_IDENTITY},
    ),
    "the start": ([(STREAM, "'scan.startup.mode'='latest-offset'")], {K.STREAM_START}),
    "the end": ([(STREAM, STREAM + ", 'scan.bounded.mode'='latest-offset'")], {K.STREAM_BOUNDS}),
    "the format of the stream": ([("'format'='json'", "'format'='csv'")], {K.STREAM_FORMAT}),
    "transactions of the stream": (
        [(STREAM, STREAM + ", 'properties.isolation.level'='read_uncommitted'")],
        {K.KAFKA_PROPERTY},
    ),
    "the source of a dimension": (
        [(USERS, USERS.replace("'shop'", "'old'"))],
        {K.DIMENSION_SOURCE},
    ),
    "the server of a dimension": ([("'hostname'='db'", "'hostname'='db2'")], {K.DIMENSION_SOURCE}),
    "a column of a dimension": (
        [("users (id BIGINT, name STRING", "users (id BIGINT, name STRING, age INT")],
        {K.DIMENSION_COLUMNS},
    ),
    "how a dimension is copied": (
        [(USERS, USERS + ", 'scan.incremental.snapshot.chunk.size'='100'")],
        {K.DIMENSION_COPY},
    ),
    "that records wait for a dimension": (
        [(USERS, USERS + ", 'join.late-rows.wait'='5 min'")],
        {K.EVENT_TIME},
    ),
    "that rows of a dimension correct records": (
        [(USERS, USERS + ", 'join.late-rows.wait'='1 s', 'join.late-rows.correct'='1 d'")],
        {K.EVENT_TIME, K.SINK_KEY},
    ),
    "the path of the sink": ([("'path'='enriched'", "'path'='other'")], {K.SINK_IDENTITY}),
    "the connector of the sink": ([(DELTA, "('connector'='blackhole')")], {K.SINK_IDENTITY}),
    "the partitions of the sink": (
        [
            (
                "item BIGINT)\nWITH ('connector'='delta'",
                "item BIGINT) PARTITIONED BY (name)\nWITH ('connector'='delta'",
            )
        ],
        {K.SINK_COLUMNS},
    ),
    "another INSERT": (
        [
            ("INSERT INTO", "EXECUTE STATEMENT SET BEGIN INSERT INTO"),
            (
                "c.item > 0;",
                "c.item > 0; INSERT INTO enriched "
                "SELECT c.user_id, c.note, c.item FROM clicks AS c; END;",
            ),
        ],
        {K.INSERTS},
    ),
}


def kinds(changes):
    return {change.kind for change in changes}


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_update_accepts(name):
    edits, expected = ACCEPTED[name]
    changes = compare(plan(SCRIPT), plan(edited(*edits)))
    assert expected <= kinds(changes)
    assert all(change.is_accepted for change in changes), changes
    assert all(change.of for change in changes)


@pytest.mark.parametrize("name", REFUSED)
def test_an_update_refuses_and_says_what_helps(name):
    edits, expected = REFUSED[name]
    changes = compare(plan(SCRIPT), plan(edited(*edits)))
    refused = [change for change in changes if not change.is_accepted]
    assert expected <= kinds(refused)
    assert all(change.reason and change.hint for change in refused)


def test_a_script_that_says_the_same_in_other_words_has_no_change():
    other = SCRIPT.replace("\n", " \n ").replace("LEFT JOIN", "left outer join")
    assert compare(plan(SCRIPT), plan(other)) == ()


# In their context
# --------------------------------------------------------------------------------------------------


def test_a_dimension_that_goes_is_accepted_with_its_join():
    both = plan(edited(*DIMENSION))
    one = replace(plan(SCRIPT), output=both.output)
    unchanged = replace(both, where=one.where)
    without = replace(unchanged, dimensions=one.dimensions, joins=one.joins)
    changes = compare(unchanged, without)
    assert kinds(changes) == {K.DIMENSION_REMOVED, K.JOIN_REMOVED}
    assert all(change.is_accepted for change in changes)


def test_the_name_of_a_dimension_is_not_used_again():
    changes = compare(plan(SCRIPT), plan(edited(*DIMENSION)), earlier=[plan(edited(*DIMENSION))])
    (refused,) = (change for change in changes if not change.is_accepted)
    assert refused.kind is K.DIMENSION_ADDED
    assert "name" in refused.hint


@pytest.mark.parametrize(("value", "is_accepted"), [("c.note", True), ("c.item", False)])
def test_a_column_that_a_rollback_left_in_the_output_keeps_its_type(value, is_accepted):
    """The output has it still, although the newest plan has not."""
    added = edited(*ADDED)
    kind = "STRING" if is_accepted else "BIGINT"
    again = edited(
        ("extra STRING", f"extra {kind}"), ("c.note FROM", f"{value} FROM"), script=added
    )
    (change,) = compare(plan(SCRIPT), plan(again), earlier=[plan(SCRIPT), plan(added)])
    assert (change.kind, change.is_accepted) == (K.OUTPUT_ADDED, is_accepted)
    assert is_accepted or "in the old type" in change.reason


def test_a_column_that_a_rollback_left_in_a_delta_table_keeps_its_case():
    added = edited(*ADDED)
    again = added.replace("extra STRING", "Extra STRING")
    (change,) = compare(plan(SCRIPT), plan(again), earlier=[plan(SCRIPT), plan(added)])
    assert not change.is_accepted
    assert change.hint == 'Name the column "extra", or otherwise than it.'
    of_topic = (
        "'delta', 'path'='enriched'",
        "'kafka', 'topic'='t', 'properties.bootstrap.servers'='kafka:9092', 'format'='json'",
    )
    plans = [plan(edited(of_topic, script=text)) for text in (SCRIPT, added, again)]
    (change,) = compare(plans[0], plans[2], earlier=plans[:2])
    assert change.is_accepted
    both = edited(
        ("extra STRING", "Extra BIGINT, extra STRING"), ("c.note", "c.item, c.note"), script=added
    )
    earlier = [plans[0], plan(edited(of_topic, script=both))]
    (change,) = compare(plans[0], plans[2], earlier=earlier)
    assert "in the old type" in change.reason


def test_a_shared_table_is_neither_added_nor_removed():
    old, new = plan(SCRIPT), plan(edited(*DIMENSION))
    shared = tuple(
        replace(d, source=SharedSource("id", d.name, 1)) if d.name == "items" else d
        for d in new.dimensions
    )
    new = replace(new, dimensions=shared)
    for pair in ((old, new), (new, replace(old, output=new.output))):
        refused = {change.kind for change in compare(*pair) if not change.is_accepted}
        assert refused & {K.DIMENSION_ADDED, K.DIMENSION_REMOVED}


@pytest.mark.parametrize(
    ("form", "is_accepted"),
    [("json", True), ("debezium-json", True), ("csv", False), ("raw", False)],
)
def test_a_topic_grows_only_by_formats_that_name_their_columns(form, is_accepted):
    if form == "raw":
        one = edited(
            (DELTA, KAFKA_SINK % form),
            ("enriched (user_id BIGINT, name STRING, item BIGINT)", "enriched (name STRING)"),
            ("c.user_id, u.name, c.item FROM", "u.name FROM"),
        )
        old = plan(one)
        new = replace(old, output=(*old.output, replace(old.output[0], name="extra")))
    else:
        old, new = (
            plan(edited((DELTA, KAFKA_SINK % form), script=script))
            for script in (SCRIPT, edited(*ADDED))
        )
    (change,) = compare(old, new)
    assert change.kind is K.OUTPUT_ADDED
    assert change.is_accepted is is_accepted


TIMED = edited(
    ("note STRING, tags", "at TIMESTAMP(3), WATERMARK FOR at AS at, note STRING, tags"),
    (
        "SELECT c.user_id, u.name, c.item FROM clicks AS c\nLEFT JOIN users FOR SYSTEM_TIME AS OF "
        "c.proctime AS u ON c.user_id = u.id\nWHERE c.item > 0",
        "SELECT user_id, MAX(note), COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), "
        "INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, user_id",
    ),
)


@pytest.mark.parametrize(
    ("edit", "is_accepted"),
    [
        (("INTERVAL '1' MINUTE", "INTERVAL '2' MINUTES"), False),
        (("MAX(note)", "MIN(note)"), False),
        (("SELECT user_id, MAX", "SELECT user_id + 1, MAX"), False),
        (("item * 2", "item * 3"), False),
        (("AS at,", "AS at - INTERVAL '1' SECOND,"), False),
        ((STREAM, STREAM + ", 'scan.max-records-per-batch'='10'"), True),
        (("'path'='enriched'", "'path'='enriched', 'sink.writer'='spark'"), True),
    ],
)
def test_a_job_with_event_time_accepts_only_what_leaves_its_rows(edit, is_accepted):
    changes = compare(plan(TIMED), plan(edited(edit, script=TIMED)))
    assert changes
    assert all(change.is_accepted for change in changes) is is_accepted


@pytest.mark.parametrize(
    ("edits", "is_accepted"),
    [
        ([("c.item > 0", "c.item > 5")], False),
        ([("c.user_id, u.name", "c.user_id + 1, u.name")], False),
        ([("u.name,", "UPPER(u.name),")], True),
        (ADDED, False),
    ],
)
def test_rows_that_replace_others_keep_their_keys_and_their_filter(edits, is_accepted):
    keyed = [
        replace(plan(s), sink=replace(plan(s).sink, merge_key=("user_id",)))
        for s in (SCRIPT, edited(*edits))
    ]
    assert all(change.is_accepted for change in compare(*keyed)) is is_accepted


def test_a_shared_table_changes_nothing_for_its_readers():
    old = replace(plan(SCRIPT), shared_table="users")
    new = replace(old, where=None)
    assert not any(change.is_accepted for change in compare(old, new))


# Resolved values
# --------------------------------------------------------------------------------------------------


def submitted(declared):
    source = replace(
        declared.probe.source,
        startup_mode=StartupMode.SPECIFIC,
        startup_offsets=((0, 17),),
        topic_ids=("id",),
    )
    return replace(declared, probe=replace(declared.probe, source=source))


def test_what_the_submission_resolved_stays():
    declared, new = plan(SCRIPT), plan(edited(*ADDED))
    old = submitted(declared)
    changes = compare(old, with_resolved(new, declared, old))
    assert kinds(changes) == {K.OUTPUT_ADDED}
    assert with_resolved(declared, declared, old) == old


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        ((STREAM, "'scan.startup.mode'='latest-offset'"), K.STREAM_START),
        (("'topic'='clicks'", "'topic'='clicks;more'"), K.STREAM_IDENTITY),
        ((STREAM, STREAM + ", 'scan.bounded.mode'='latest-offset'"), K.STREAM_BOUNDS),
    ],
)
def test_what_the_new_script_changes_is_not_taken_for_resolved(edit, kind):
    declared, new = plan(SCRIPT), plan(edited(edit))
    old = submitted(declared)
    refused = [c for c in compare(old, with_resolved(new, declared, old)) if not c.is_accepted]
    assert kind in kinds(refused)


WITH_HISTORY = """
CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector'='upsert-kafka', 'topic'='users', 'properties.bootstrap.servers'='k:9092',
      'key.format'='json', 'value.format'='json', 'history.connector'='delta',
      'history.path'='users', 'history.version'='3');
CREATE TABLE s (k BIGINT, p AS PROCTIME())
WITH ('connector'='kafka', 'topic'='s', 'properties.bootstrap.servers'='k:9092', 'format'='json');
CREATE TABLE o (x BIGINT, name STRING) WITH ('connector'='blackhole');
INSERT INTO o SELECT s.k, u.name FROM s
JOIN users FOR SYSTEM_TIME AS OF s.p AS u ON s.k = u.id;
"""


@pytest.mark.parametrize("version", ["3", "4"])
def test_the_start_behind_a_history_stays_unless_the_history_is_another_one(version):
    declared = plan(WITH_HISTORY)
    new = plan(WITH_HISTORY.replace("'3'", f"'{version}'"))
    (users,) = declared.dimensions
    history = users.source.history.starting_at({0: 5})
    users = replace(users, source=replace(users.source, history=history, topic_id="a"))
    old = replace(declared, dimensions=(users,))
    changes = compare(old, with_resolved(new, declared, old))
    assert kinds(changes) == (set() if version == "3" else {K.DIMENSION_COPY})
    assert all(not change.is_accepted for change in changes)


# Every field
# --------------------------------------------------------------------------------------------------

PARTS = sorted(FIELDS, key=lambda part: part.__name__)


def ruled(part):
    """The fields of a part; its class tells the `kind`."""
    return {field.name for field in dataclasses.fields(part)} - {"kind"}


EVERY_FIELD = [(part, name) for part in PARTS for name in sorted(ruled(part))]


def made(hint, variant):
    """A value of a type; another one for each of two variants, where the type has two."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        if type(None) in arguments and not variant:
            return None
        return made(next(a for a in arguments if a is not type(None)), variant)
    if origin is tuple:
        if arguments[-1] is not ...:
            return tuple(made(each, variant) for each in arguments)
        return (made(arguments[0], variant),) if variant else ()
    if hint is SqlType:  # it has members of its own kind
        return SqlType(list(TypeName)[variant])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)[variant]
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return hint(**{f.name: made(hints[f.name], variant) for f in dataclasses.fields(hint)})
    return {int: variant, bool: bool(variant), float: float(variant), str: f"v{variant}"}[hint]


def classes_in(hint):
    if dataclasses.is_dataclass(hint):
        yield hint
    for argument in typing.get_args(hint):
        yield from classes_in(argument)


def test_every_field_of_every_part_of_a_plan_has_a_rule():
    reached, open_parts = {JoinPlan}, [JoinPlan]
    while open_parts:
        part = open_parts.pop()
        hints = typing.get_type_hints(part)
        rules = rules_of(part)
        assert set(rules) - {"kind"} == ruled(part), part
        for name, rule in rules.items():
            if isinstance(rule, Inner | Named | Listed):
                new = set(classes_in(hints[name])) - reached
                reached |= new
                open_parts += new
    assert reached >= set(FIELDS)


@pytest.mark.parametrize(
    ("part", "name"), EVERY_FIELD, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_difference_of_any_field_is_accepted_by_a_rule_or_refused(part, name):
    hint = typing.get_type_hints(part)[name]
    for base, (one, other) in itertools.product((0, 1), ((0, 1), (1, 0))):
        old = replace(made(part, base), **{name: made(hint, one)})
        new = replace(old, **{name: made(hint, other)})
        found = list(differences(old, new, FieldPlace(K.UNKNOWN, "it", 0)))
        rule = FIELDS[part][name]
        assert bool(found) is not (isinstance(rule, Nothing) or old == new)
        for each in found:
            expected = Accepted if each.kind in ACCEPTED_KINDS else Refused
            assert isinstance(each.kind.rule, expected)


ACCEPTED_KINDS = {kind for _, expected in ACCEPTED.values() for kind in expected} | {
    K.DIMENSION_OPTION,
    K.DIMENSION_REMOVED,
    K.JOIN_ADDED,
    K.JOIN_REMOVED,
    K.JOIN_ORDER,
    K.STREAM_OPTION,
}


def test_a_field_without_a_rule_is_refused():
    @dataclasses.dataclass(frozen=True)
    class Newer:
        value: int

    (difference,) = differences(Newer(1), Newer(2), FieldPlace(K.LABEL, "it", 0))
    assert isinstance(difference.kind.rule, Refused)


def test_every_kind_has_one_rule_and_every_refusal_a_hint():
    for rule in (kind.rule for kind in ChangeKind):
        assert isinstance(rule, Accepted) or (rule.reason and rule.hint.endswith("."))
    leaves = {r.kind for rules in FIELDS.values() for r in rules.values() if isinstance(r, Leaf)}
    assert {K.FILTER, K.STREAM_START, K.EVENT_TIME} <= leaves


def test_the_stream_never_changes():
    """No field of the stream's identity is of an accepted kind, whatever it is changed to."""
    for name in ("startup_mode", "startup_offsets", "topic_ids", "more_topics", "topic_pattern"):
        old = made(KafkaSource, 0)
        new = replace(old, **{name: made(typing.get_type_hints(KafkaSource)[name], 1)})
        for difference in differences(old, new, FieldPlace(K.STREAM_IDENTITY, "it", 0)):
            assert isinstance(difference.kind.rule, Refused)
