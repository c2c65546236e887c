"""A child of another process is waited for by the link that its end arrives at."""

import fcntl
import resource
import socket
import subprocess
import time
from contextlib import contextmanager
from threading import Thread

import pytest

from joins.adapters.process import forks
from joins.adapters.process.forks import ForkedChild, receive, send

MANY = 1_200  # descriptors, as a control plane with many connections has them


@contextmanager
def high_link():
    """The child's end of a link, and ours by a descriptor that select() refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY + 10), hard))
    ours, theirs = socket.socketpair()
    high = socket.socket(fileno=fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, MANY))
    try:
        with ours, theirs, high:
            ours.close()
            yield high, theirs
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_end_is_waited_for_on_any_descriptor():
    with high_link() as (link, theirs):
        assert link.fileno() >= MANY
        child = ForkedChild(7, link)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=0.05)
        end = Thread(target=send, args=(theirs, {"exit": 3}))
        end.start()
        assert child.wait(timeout=60) == 3
        end.join()
        assert (child.wait(), child.poll()) == (3, 3)


def test_an_end_is_seen_whole_whenever_it_is_looked_for():
    for _ in range(300):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            child, end = ForkedChild(7, ours), Thread(target=send, args=(theirs, {"exit": 3}))
            end.start()
            while (code := child.poll()) is None:
                pass
            end.join()
            assert code == 3


def test_a_child_whose_forking_process_is_gone_counts_as_killed():
    with high_link() as (link, theirs):
        child = ForkedChild(7, link)
        theirs.close()
        assert child.wait(timeout=60) == -9


def test_of_two_threads_that_ask_at_once_none_takes_the_end_for_a_kill(monkeypatch):
    """A control plane's requests look at a runner while its supervisor does."""

    def slowly(link, descriptors=0):
        time.sleep(0.2)
        return receive(link, descriptors)

    monkeypatch.setattr(forks, "receive", slowly)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = ForkedChild(7, ours)
        send(theirs, {"exit": 3})
        askers = [Thread(target=child.poll) for _ in range(4)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        assert child.poll() == 3
