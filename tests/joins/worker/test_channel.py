"""Connections of tasks to the driver: one that fails leaves the others."""

import threading
from types import SimpleNamespace

import pytest

from joins.worker.channel import Listener, ResidentChannel
from tests.support.wait import wait_until


def test_tasks_connect_again_once_there_is_room_for_a_thread(monkeypatch):
    served, refused, start = [], [], threading.Thread.start

    def refuse_once(thread):
        if thread.name == "senders" and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_once)
    listener = Listener(SimpleNamespace(master="local[1]"), "senders", served.append)
    try:
        with pytest.raises(OSError, match=r"ended|timed out"):
            ResidentChannel.connect(listener.address, listener.secret)
        ResidentChannel.connect(listener.address, listener.secret).close()
        wait_until(lambda: served, what="the second connection is served")
    finally:
        listener.close()
    assert len(refused) == 1
