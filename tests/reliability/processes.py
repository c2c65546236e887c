"""The processes of a job, seen and troubled from outside: paused, killed, without room to write."""

import signal
from contextlib import suppress
from pathlib import Path

import psutil

from joins.adapters.process.forks import words_of
from service.jobs.store.layout import living_runner
from tests.support.wait import wait_until

CDC = "joins.adapters.mysql.binlog"
FEED = "joins.adapters.topic.feed"
WORKER = "joins.worker.daemon"
_GONE = (psutil.NoSuchProcess, psutil.ZombieProcess)


def runner_of(job_directory: Path) -> psutil.Process | None:
    return living_runner(job_directory)


def family(job_directory: Path) -> list[psutil.Process]:
    """The runner and all below it."""
    runner = runner_of(job_directory)
    with suppress(*_GONE):
        return [runner, *runner.children(recursive=True)] if runner else []
    return []


def members(job_directory: Path, part: str) -> list[psutil.Process]:
    """Those of the family that run the module `part`."""
    found = []
    for process in family(job_directory)[1:]:
        with suppress(*_GONE):
            if part in words_of(process.cmdline()):
                found.append(process)
    return found


def workers_of(job_directory: Path) -> list[psutil.Process]:
    """Spark's Python workers, also those that serve on after their daemon was killed."""
    daemons = daemons_of(job_directory)
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = words_of(process.info["cmdline"] or ())
        with suppress(*_GONE):
            if WORKER in command and process not in daemons:
                found += [process] if Path(process.cwd()) == job_directory.resolve() else []
    return found


def daemons_of(job_directory: Path) -> list[psutil.Process]:
    both = members(job_directory, WORKER)
    pids = {process.pid for process in both}
    return [process for process in both if _parent(process) not in pids]


def _parent(process: psutil.Process) -> int | None:
    with suppress(*_GONE):
        return process.ppid()
    return None


def stopped(job_directory: Path) -> list[psutil.Process]:
    """Those of the family that are halted by SIGSTOP."""
    found = []
    for process in family(job_directory):
        with suppress(*_GONE):
            if process.status() == psutil.STATUS_STOPPED:
                found.append(process)
    return found


def send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(*_GONE):
        process.send_signal(number)


def kill_hard(*processes: psutil.Process | None) -> None:
    """SIGKILL, and wait until they are gone."""
    for process in processes:
        if process is not None:
            send(process, signal.SIGKILL)
    for process in processes:
        if process is not None:
            wait_until(lambda p=process: not lives(p), what=f"{process.pid} is gone")


def with_children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(*_GONE):
        return [process, *process.children(recursive=True)]
    return []


def kill_node(process: psutil.Process) -> None:
    kill_hard(*with_children(process))


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except _GONE:
        return False
