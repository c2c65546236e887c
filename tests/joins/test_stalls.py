"""Faults by part: the oldest is told first and goes when its part goes on."""

import pytest

from joins.errors import SourceUnavailableError
from joins.stalls import Fault, Stalls
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
