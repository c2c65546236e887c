"""datagen's rows: a function of seed and row number, within the bounds asked for."""

import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters import datagen
from joins.adapters.datagen import texts_of
from joins.kernels.probe.generate import Material, generate, sequence_length
from joins.plan.errors import SourceError
from joins.plan.faker import TEXTS
from joins.plan.plan import DatagenField, DatagenKind, Field
from joins.plan.types import Member, SqlType, TypeName, array_type, arrow_type, map_type, row_type
from tests.support.laws import examples

RANDOM, SEQUENCE = DatagenKind.RANDOM, DatagenKind.SEQUENCE
KINDS = {
    "boolean": SqlType(TypeName.BOOLEAN),
    "tinyint": SqlType(TypeName.TINYINT),
    "smallint": SqlType(TypeName.SMALLINT),
    "int": SqlType(TypeName.INT),
    "bigint": SqlType(TypeName.BIGINT),
    "float": SqlType(TypeName.FLOAT),
    "double": SqlType(TypeName.DOUBLE),
    "decimal": SqlType(TypeName.DECIMAL, 10, 2),
    "decimal_without_whole_digits": SqlType(TypeName.DECIMAL, 2, 2),
    "string": SqlType(TypeName.STRING),
}
FIELDS = tuple(Field(name, kind) for name, kind in KINDS.items())
RULES = tuple(DatagenField(name, RANDOM) for name in KINDS)
BOUNDS = {
    "tinyint": ("tinyint", "-128", "127"),
    "one_value": ("int", "7", "7"),
    "zero_is_a_bound": ("int", "0", "0"),
    "negative": ("bigint", "-5", "-3"),
    "whole_bigint": ("bigint", str(-(2**63)), str(2**63 - 1)),
    "double": ("double", "-1.5", "2.5"),
    "double_up_to_zero": ("double", "-2", "0"),
    "decimal": ("decimal", "10.50", "10.60"),
}
SEQUENCES = {
    "tinyint": ("tinyint", "3"),
    "bigint_beyond_32_bits": ("bigint", str(2**40)),
    "negative": ("int", "-2"),
    "double": ("double", "5"),
    "float": ("float", "5"),
    "decimal": ("decimal", "5"),
    "string": ("string", "5"),
}


@pytest.fixture(autouse=True)
def _few_texts(monkeypatch):
    """A tenth of them: to make one takes a millisecond."""
    monkeypatch.setattr(datagen, "_OF_EACH", 200)


def column(kind, rule, rows=range(1000)):
    return generate((Field("v", KINDS[kind]),), (rule,), 1, rows).column(0)


@settings(max_examples=examples(60))
@given(
    first=st.integers(0, 2**40),
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    seed=st.integers(0, 2**63 - 1),
)
def test_a_row_does_not_depend_on_where_a_batch_begins(first, counts, seed):
    whole = generate(FIELDS, RULES, seed, range(first, first + sum(counts)))
    parts = []
    for count in counts:
        parts.append(generate(FIELDS, RULES, seed, range(first, first + count)))
        first += count
    assert pa.Table.from_batches(parts).combine_chunks().to_batches()[0].equals(whole)


def test_columns_have_the_declared_types_and_no_nulls():
    made = generate(FIELDS, RULES, 1, range(50))
    assert made.schema == pa.schema([(f.name, arrow_type(f.type)) for f in FIELDS])
    assert all(column.null_count == 0 for column in made.columns)
    made.validate(full=True)


PAYLOAD = row_type(
    Member("id", KINDS["bigint"]),
    Member(
        "items", array_type(row_type(Member("n", KINDS["int"]), Member("sku", KINDS["string"])))
    ),
    Member("labels", map_type(array_type(KINDS["boolean"]))),
)
NESTED = (Field("n", KINDS["bigint"]), Field("p", PAYLOAD), Field("q", PAYLOAD))
NESTED_RULES = (
    DatagenField("p.id", SEQUENCE, start="5", end="2000"),
    DatagenField("p.items", RANDOM, length=4),
    DatagenField("p.items.element.n", RANDOM, minimum="1", maximum="9"),
    DatagenField("p.items.element.sku", RANDOM, length=2),
    DatagenField("p.labels.key", RANDOM, length=5),
    DatagenField("p.labels.value", RANDOM, length=1),
)


def test_nested_values_are_made_of_their_parts():
    made = generate(NESTED, NESTED_RULES, 1, range(10, 300))
    made.validate(full=True)
    assert made.schema == pa.schema([(f.name, arrow_type(f.type)) for f in NESTED])
    rows = made.column("p").to_pylist()
    assert [row["id"] for row in rows] == list(range(15, 305))
    assert {len(row["items"]) for row in rows} == {4}
    assert {item["n"] for row in rows for item in row["items"]} == set(range(1, 10))
    assert {len(item["sku"]) for row in rows for item in row["items"]} == {2}
    assert {len(key) for row in rows for key, _ in row["labels"]} == {5}
    assert {len(value) for row in rows for _, value in row["labels"]} == {1}
    others = made.column("q").to_pylist()
    assert {(len(row["items"]), len(row["labels"])) for row in others} == {(3, 3)}
    sizes = {len(value) for row in others for _, value in row["labels"]}
    assert sizes == {3}
    numbers = [row["id"] for row in others] + made.column("n").to_pylist()
    assert len(set(numbers)) == 2 * 290, "each part has values of its own"


def test_a_nested_row_does_not_depend_on_where_a_batch_begins():
    whole = generate(NESTED, NESTED_RULES, 3, range(7, 60))
    parts = [generate(NESTED, NESTED_RULES, 3, rows) for rows in (range(7, 8), range(8, 60))]
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()


def test_seeds_and_columns_differ():
    two = (Field("a", KINDS["bigint"]), Field("b", KINDS["bigint"]))
    one = generate(two, (), 1, range(100))
    other = generate(two, (), 2, range(100))
    values = [set(c.to_pylist()) for batch in (one, other) for c in batch.columns]
    assert len(set.union(*values)) == 400


@pytest.mark.parametrize(("kind", "low", "high"), BOUNDS.values(), ids=BOUNDS)
def test_random_values_stay_within_their_bounds(kind, low, high):
    made = column(kind, DatagenField("v", RANDOM, minimum=low, maximum=high))
    bounds = pc.min_max(made)
    target = arrow_type(KINDS[kind])
    least, most = (pa.scalar(text).cast(target).as_py() for text in (low, high))
    assert least <= bounds["min"].as_py() <= bounds["max"].as_py() <= most
    if most - least > 0:
        assert len(pc.unique(made)) > 1


def test_small_ranges_are_filled_evenly():
    made = column("int", DatagenField("v", RANDOM, minimum="1", maximum="4"), range(8000))
    counts = [entry["counts"] for entry in pc.value_counts(made).to_pylist()]
    assert len(counts) == 4
    assert min(counts) > 1800


@pytest.mark.parametrize("length", [1, 7, 8, 9, 100])
def test_strings_have_the_length_asked_for(length):
    made = column("string", DatagenField("v", RANDOM, length=length), range(20))
    assert set(pc.utf8_length(made).to_pylist()) == {length}
    assert set("".join(made.to_pylist())) <= set("0123456789abcdef")


@pytest.mark.parametrize(("kind", "start"), SEQUENCES.values(), ids=SEQUENCES)
def test_a_sequence_counts_from_its_start(kind, start):
    made = column(kind, DatagenField("v", SEQUENCE, start=start, end="2000"), range(10, 13))
    first = int(start) + 10
    assert made.type == arrow_type(KINDS[kind])
    assert [float(v) for v in made.to_pylist()] == [first, first + 1, first + 2]


def test_the_shortest_sequence_ends_the_stream():
    rules = [
        DatagenField("a", SEQUENCE, start="1", end="100"),
        DatagenField("b", SEQUENCE, start="-5", end="5"),
        DatagenField("c", RANDOM),
    ]
    assert sequence_length(rules) == 11
    assert sequence_length(rules[2:]) is None


def test_a_type_that_it_cannot_make_is_named():
    with pytest.raises(SourceError, match="BYTES"):
        generate((Field("v", SqlType(TypeName.BYTES)),), (), 1, range(1))


TIMES = {
    "timestamp": SqlType(TypeName.TIMESTAMP, 3),
    "timestamp_ltz": SqlType(TypeName.TIMESTAMP_LTZ, 3),
}
NOW_MS = 1_795_000_000_000


def made_by(kind, rows=range(5_000), **rule):
    rules = (DatagenField("v", RANDOM, **rule),)
    field = (Field("v", {**KINDS, **TIMES}[kind]),)
    return generate(field, rules, 7, rows, Material(NOW_MS, texts_of(rules, 7))).column(0)


def ages_ms(times):
    return [NOW_MS - ms for ms in times.cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist()]


@pytest.mark.parametrize("kind", TIMES)
def test_a_time_is_the_clocks_or_lies_before_it_as_far_as_is_said(kind):
    assert set(ages_ms(made_by(kind))) == {0}
    ages = ages_ms(made_by(kind, max_past_ms=60_000))
    assert 0 <= min(ages) < 1_000
    assert 59_000 < max(ages) <= 60_000


def test_a_date_and_a_time_of_day_are_the_clocks():
    now_ms = 1_800_000_000_123
    times = (Field("t", SqlType(TypeName.TIME, 3)), Field("s", SqlType(TypeName.TIME)))
    fields = (Field("d", SqlType(TypeName.DATE)), *times)
    batch = generate(fields, (), 1, range(3), Material(now_ms))
    clock = dt.datetime.fromtimestamp(now_ms / 1_000, dt.UTC)
    assert set(batch.column(0).to_pylist()) == {clock.date()}
    assert set(batch.column(1).cast(pa.time64("us")).to_pylist()) == {clock.time()}
    assert set(batch.column(2).cast(pa.time64("us")).to_pylist()) == {
        clock.time().replace(microsecond=0)
    }


def test_dates_of_an_expression_lie_between_its_bounds():
    rules = (DatagenField("d", RANDOM, expression="#{Date.past '15','5','DAYS'}"),)
    days = dt.date(2027, 1, 15)
    now_ms = int(dt.datetime(2027, 1, 15, 12, tzinfo=dt.UTC).timestamp() * 1_000)
    batch = generate((Field("d", SqlType(TypeName.DATE)),), rules, 1, range(500), Material(now_ms))
    ages = {(days - day).days for day in batch.column(0).to_pylist()}
    assert ages == set(range(5, 16))


EXPRESSIONS = {
    "names": ("string", "#{Name.fullName}", r"[A-Z][^\d]+ [^\d]+"),
    "any_spelling_of_a_name": ("string", "#{name.first_name}", r"[A-Z]\w+"),
    "addresses_of_mail": ("string", "#{Internet.emailAddress}", r"\S+@\S+\.\w+"),
    "one_of_several": ("string", "#{Options.option 'CANCELLED', 'PAID'}", r"CANCELLED|PAID"),
    "text_around_parts": (
        "string",
        "/p/#{Number.numberBetween '1','9'}?#{Lorem.word}",
        r"/p/[1-8]\?\w+",
    ),
    "whole_numbers": ("int", "#{number.numberBetween '-3','4'}", r"-?[0-3]"),
    "fractions": ("double", "#{number.randomDouble '2','-1','3'}", r"-?[0-3](\.\d{1,2})?"),
    "fractions_of_a_decimal": ("decimal", "#{Number.randomDouble '1','5','9'}", r"[5-9]\.\d0"),
    "fractions_as_text": ("string", "#{Number.randomDouble '3','0','1'} m", r"[01](\.\d{1,3})? m"),
    "numbers_of_a_list": ("decimal", "#{Options.option '1.25','2'}", r"1\.25|2\.00"),
}


@pytest.mark.parametrize(("kind", "expression", "form"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_makes_values_of_its_form(kind, expression, form):
    texts = made_by(kind, expression=expression).cast(pa.string())
    assert texts.null_count == 0
    unlike = [text for text in texts.to_pylist() if not re.fullmatch(form, text)]
    assert not unlike
    assert len(set(texts.to_pylist())) > 1


def test_times_of_an_expression_lie_between_its_bounds():
    past = ages_ms(made_by("timestamp", expression="#{date.past '15','5','SECONDS'}"))
    assert 5_000 <= min(past) < 5_500
    assert 14_500 < max(past) <= 15_000
    future = ages_ms(made_by("timestamp_ltz", expression="#{date.future '2','MINUTES'}"))
    assert -120_000 <= min(future) < -119_000
    assert max(future) <= 0


@pytest.mark.parametrize("skew", [0.5, 1.0, 1.1, 2.0])
def test_a_skew_is_zipfs_law(skew):
    rows, keys = 40_000, 1_000
    made = made_by("bigint", range(rows), minimum="10", maximum=str(9 + keys), skew=skew)
    counts = np.bincount(np.asarray(made) - 10, minlength=keys)
    assert len(counts) == keys, "all lie between the bounds"
    shares = np.arange(1, keys + 1) ** -skew
    expected = shares / shares.sum()
    head = [counts[:n].sum() / rows - expected[:n].sum() for n in (1, 10, 100)]
    assert max(abs(share) for share in head) < 0.12
    assert counts[0] > counts[10] > counts[500]


def test_a_skew_of_all_numbers_stays_within_them():
    low, high = str(-(2**63)), str(2**63 - 1)
    for skew in (0.0, 0.3, 1.0, 99.0):
        made_by("bigint", range(500), minimum=low, maximum=high, skew=skew).validate(full=True)


def test_a_skew_of_a_list_prefers_its_first():
    made = made_by("string", expression="#{Options.option 'a','b','c'}", skew=1.5).to_pylist()
    assert made.count("a") > made.count("b") > made.count("c") > 0


@pytest.mark.parametrize("kind", [*KINDS, *TIMES])
def test_a_share_of_the_values_is_null(kind):
    assert 0.2 < made_by(kind, null_rate=0.25).null_count / 5_000 < 0.3
    assert made_by(kind, null_rate=1.0).null_count == 5_000


def test_texts_are_those_of_the_seed():
    rules = (DatagenField("v", RANDOM, expression="#{Name.fullName} #{Address.city}"),)
    assert texts_of(rules, 1) == texts_of(rules, 1) != texts_of(rules, 2)


@pytest.mark.parametrize("name", TEXTS)
def test_every_kind_of_text_is_made(name):
    (texts,) = texts_of((DatagenField("v", RANDOM, expression=f"#{{{name}}}"),), 1).values()
    assert len(texts.unique()) > 20
