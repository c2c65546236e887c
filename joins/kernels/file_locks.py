"""Locks on open files (`flock`), which the system takes back when a process ends."""

import fcntl
import os


def take_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock of an open file without waiting; False if another process has it.

    Args:
        descriptor: of the file; children that inherit it hold the lock, too.
        shared: with others that ask for it in the same way.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def give_lock_up(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing it leaves the lock to the child's copy
    os.close(descriptor)
