"""Waits for servers: each server has its own time, and all of them an end."""

import time
from itertools import count

import pytest

from joins.adapters.network import within
from joins.plan.errors import SourceUnavailableError
from tests.support.wait import wait_until


def test_a_server_does_not_pay_for_those_before_it_nor_for_this_machine():
    with within(0.3) as deadline:
        assert deadline.left_s("first") > 0
        wait_until(lambda: is_over(deadline, "first"), what="its time is over")
        assert deadline.left_s("second") > 0
        with pytest.raises(SourceUnavailableError, match='"first" was not asked again: it took'):
            deadline.left_s("first")


def test_all_servers_together_have_an_end():
    with within(0.05) as deadline:
        names = (str(number) for number in count())
        wait_until(lambda: not has_time(deadline, next(names)), what="the time of all is over")
        with pytest.raises(SourceUnavailableError, match="the servers asked before it took"):
            deadline.left_s("the last")


def test_what_waits_for_a_server_is_cut_at_the_end_of_its_time():
    cut = []
    with within(0.05) as deadline:
        deadline.left_s("a")
        deadline.on_end("a", lambda: cut.append("a"))
        wait_until(lambda: cut == ["a"], what="it is cut")
        deadline.on_end("a", lambda: cut.append("later"))
        assert cut == ["a", "later"]
    with within(60.0) as deadline:
        deadline.left_s("b")
        deadline.on_end("b", lambda: cut.append("b"))
    assert cut == ["a", "later"], "work that has ended is not cut"


def has_time(deadline, server):
    """False once a server is refused for the others; its own time may be very short before."""
    time.sleep(0.01)
    try:
        deadline.left_s(server)
    except SourceUnavailableError as exc:
        return "the servers asked before" not in exc.message
    return True


def is_over(deadline, server):
    time.sleep(0.01)
    try:
        return deadline.left_s(server) <= 0
    except SourceUnavailableError:
        return True
