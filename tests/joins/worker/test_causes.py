"""What stops a task reaches the driver as itself: a disk, memory, a right, the network."""

import errno
import os
import socket
import traceback
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from subprocess import SubprocessError

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from joins.plan.causes import cause_of, fault_in
from joins.plan.errors import (
    DiskFullError,
    FileSystemError,
    JoinError,
    NetworkError,
    OutOfMemoryError,
    PermissionDeniedError,
    SinkError,
)
from joins.worker.staging import TaskReport, telling_cause
from joins.worker.work import Work

FULL = ("ENOSPC", "EDQUOT", "EFBIG")
DENIED = ("EACCES", "EPERM", "EROFS")
AWAY = (
    *("ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH"),
    *("EHOSTDOWN", "ENETUNREACH", "ENETDOWN", "ENETRESET", "ENOTCONN", "ESHUTDOWN"),
    *("EADDRNOTAVAIL", "EADDRINUSE"),
)
KINDS = {
    **dict.fromkeys((getattr(errno, name) for name in FULL), DiskFullError),
    **dict.fromkeys((getattr(errno, name) for name in DENIED), PermissionDeniedError),
    **dict.fromkeys((getattr(errno, name) for name in AWAY), NetworkError),
    errno.ENOMEM: OutOfMemoryError,
}
PATH = "/lake/out.parquet"


def kind_of(code):
    return KINDS.get(code, FileSystemError)


def os_errors(code):
    """The errors of one number, as Python, Arrow and Rust's libraries raise them."""
    yield OSError(code, os.strerror(code), PATH)
    yield OSError(code, f"Error writing bytes to file. Detail: [errno {code}]")
    text = f"Generic LocalFileSystem error: {os.strerror(code)} (os error {code})"
    yield OSError(text)
    yield RuntimeError(text)
    yield pa.ArrowInvalid(f"cannot write: [errno {code}] {os.strerror(code)}")


@pytest.mark.parametrize("code", sorted(errno.errorcode))
def test_every_number_of_the_system_has_its_kind_however_it_is_raised(code):
    for error in os_errors(code):
        found = cause_of(error, "probe query ended")
        assert type(found) is kind_of(code), error
        assert found.message.startswith("probe query ended: ")
        assert str(error) in found.detail
        assert "Traceback" not in found.message
        assert "Errno" not in found.message
    named = cause_of(OSError(code, os.strerror(code), PATH), "x")
    if type(named) in (DiskFullError, PermissionDeniedError) or code not in KINDS:
        assert PATH in named.message or code in (errno.EMFILE, errno.ENFILE)


OTHERS = {
    "memory": (MemoryError(), OutOfMemoryError),
    "arrow's memory": (pa.ArrowMemoryError("malloc of size 9 failed"), OutOfMemoryError),
    "name": (socket.gaierror(-2, "Name or service not known"), NetworkError),
    "time": (TimeoutError("timed out"), NetworkError),
    "a future's time": (FutureTimeout(), NetworkError),
    "reset": (ConnectionResetError(), NetworkError),
    "heap": (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), OutOfMemoryError),
    "jvm's disk": (RuntimeError("java.io.IOException: No space left on device"), DiskFullError),
    "jvm's right": (RuntimeError("java.nio.file.AccessDeniedException: /x"), PermissionDeniedError),
    "killed": (RuntimeError("Python worker exited unexpectedly (crashed)"), JoinError),
    "value": (ValueError("no such unit"), JoinError),
    "key": (KeyError("id"), JoinError),
    "process": (SubprocessError("ended"), JoinError),
    "ours": (SinkError("topic is gone", hint="Create it."), SinkError),
}


@pytest.mark.parametrize(("error", "kind"), OTHERS.values(), ids=OTHERS)
def test_every_kind_of_exception_is_told_as_what_it_is(error, kind):
    found = cause_of(error, "a task failed")
    assert type(found) is kind
    assert "\n" not in found.message


def test_what_lies_behind_an_exception_counts():
    full = OSError(errno.ENOSPC, "No space left on device", PATH)
    for outer in (RuntimeError("commit failed"), ValueError("batch"), pa.ArrowInvalid("close")):
        for link in ("__cause__", "__context__"):
            chained = type(outer)(*outer.args)
            setattr(chained, link, full)
            found = cause_of(chained, "a task failed")
            assert type(found) is DiskFullError
            assert PATH in found.message


def test_a_line_that_is_cut_or_forged_tells_nothing():
    for text in ("sluice-fault: {", 'sluice-fault: {"fault": 1}', "sluice-fault: []", "x"):
        assert fault_in(text) is None
    assert type(fault_in('sluice-fault: {"fault": "?", "message": "m", "hint": "h"}')) is JoinError


def _raising(batches, *, error):
    for _ in batches:
        raise error
    yield TaskReport().to_batch()


def _filling(batches):
    """A stage that writes until the disk is full: the kernel says so of this device."""
    for _ in batches:
        with open("/dev/full", "wb", buffering=0) as file:
            file.write(b"x")
    yield TaskReport().to_batch()


def _ours(batches):
    yield from _raising(batches, error=SinkError("gone", hint="Create it."))


def _refusing(batches):
    for _ in batches:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            socket.create_connection(closed.getsockname(), timeout=5)
    yield TaskReport().to_batch()


def told_by(spark, stage):
    with pytest.raises((PySparkException, Py4JError)) as raised:
        Work(spark, ["item"]).report(stage)
    return cause_of(raised.value, "probe query ended")


STAGES = {
    "a full disk": (_filling, DiskFullError),
    "a closed port": (_refusing, NetworkError),
    **{
        errno.errorcode[code]: (
            partial(_raising, error=OSError(code, os.strerror(code), PATH)),
            kind_of(code),
        )
        for code in (errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO, errno.ETIMEDOUT)
    },
    "memory": (partial(_raising, error=MemoryError()), OutOfMemoryError),
    "another": (partial(_raising, error=ValueError("no such unit")), JoinError),
    "ours": (_ours, SinkError),
}


@pytest.mark.parametrize(("stage", "kind"), STAGES.values(), ids=STAGES)
def test_the_driver_is_told_what_stopped_a_task(spark, stage, kind):
    found = told_by(spark, stage)
    assert type(found) is kind
    assert "Python worker" not in found.message
    assert "Traceback" not in found.message + found.detail
    assert found.hint.endswith(".")


def test_a_task_tells_its_cause_once():
    try:
        with telling_cause():
            raise OSError(errno.ENOSPC, "No space left on device", PATH)
    except OSError:
        found = fault_in(traceback.format_exc())
    assert type(found) is DiskFullError
    assert found.message == f'a task failed: the disk of "{PATH}" is full (No space left on device)'
