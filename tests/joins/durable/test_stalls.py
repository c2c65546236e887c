"""Faults by part: the oldest is told first and goes when its part goes on."""

import re
from datetime import UTC, datetime

import pytest

from joins.durable.requests import Fault, Stalls
from joins.plan.errors import RecordsLostError, SourceUnavailableError
from watermark.errors import SluiceError


def error(message):
    return SourceUnavailableError(message, hint=f"Mend {message}.")


NAMES = {
    "of_several_words": (error("db"), "source-unavailable"),
    "of_the_root": (SluiceError("x", hint="y"), "sluice"),
}


@pytest.mark.parametrize(("fault", "name"), NAMES.values(), ids=NAMES)
def test_a_fault_has_a_stable_name(fault, name):
    assert Fault.of(fault) == Fault(name, fault.message, fault.hint)


def test_no_fault_no_answer():
    stalls = Stalls()
    stalls.clear("probe")
    assert stalls.first() is None


def test_a_kafka_that_does_not_answer_is_one_fault_of_several_parts():
    stalls = Stalls()
    stalls.note("kafka", error('kafka "broker:9092" cannot be reached'))
    stalls.note("source users", error('Kafka at "broker:9092" did not take records of topic "t"'))
    stalls.note("source items", error('kafka "other:9092" cannot be reached'))
    assert [part for part, _ in stalls.all()] == ["kafka", "source items"]
    stalls.clear("kafka")
    assert [part for part, _ in stalls.all()] == ["source users", "source items"]


def test_a_kafka_that_does_not_answer_is_told_of_the_stream_even_if_a_source_saw_it_first():
    stalls = Stalls()
    stalls.note("source users", error('Kafka at "broker:9092" did not take records of topic "t"'))
    stalls.note("source orders", error('kafka "broker:9092" cannot be reached'))
    assert [part for part, _ in stalls.all()] == ["source users"]
    stalls.note("kafka", error('kafka "broker:9092" cannot be reached'))
    assert [part for part, _ in stalls.all()] == ["kafka"]
    stalls.note("source items", error("database is down"))
    assert [part for part, _ in stalls.all()] == ["kafka", "source items"]


def test_the_oldest_fault_comes_first_and_keeps_its_place():
    stalls = Stalls()
    stalls.note("probe", error("disk"))
    stalls.note("kafka", error("broker"))
    stalls.note("probe", error("disk again"))
    part, fault = stalls.first()
    assert (part, fault.message, fault.hint) == ("probe", "disk again", "Mend disk again.")
    stalls.clear("probe")
    assert stalls.first()[0] == "kafka"
    stalls.clear("kafka")
    assert stalls.first() is None


def test_a_server_that_is_away_is_told_since_when_with_the_librarys_text_apart():
    stalls = Stalls()
    away = 'kafka "broker:9092" cannot be reached'
    began = datetime.now(UTC).replace(microsecond=0)
    for text in ("NoBrokersAvailable", "KafkaTimeoutError: 30 s"):
        stalls.note("kafka", SourceUnavailableError(away, hint="Start it.", detail=text))
        fault = stalls.first()[1]
        assert fault.detail == text
        since = re.fullmatch(
            r'kafka "broker:9092" has not answered since (\d\d:\d\d:\d\d) UTC', fault.message
        )
        assert since is not None
        assert f"{began:%H:%M:%S}" <= since[1] <= f"{datetime.now(UTC):%H:%M:%S}"


def test_a_fault_that_waits_for_an_acknowledgement_goes_before_older_ones():
    stalls = Stalls()
    stalls.note("kafka", error("broker"))
    stalls.note("probe", RecordsLostError("5 records are gone", hint="Acknowledge it."))
    assert [part for part, _ in stalls.all()] == ["probe", "kafka"]
