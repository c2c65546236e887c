"""The CPU that this process, its descendants and those that have ended have used."""

import os
from contextlib import suppress

import psutil


def used_cpu_s() -> float:
    """Seconds of CPU; of processes that live as long as this one, too."""
    used = os.times()
    total = used.user + used.system + used.children_user + used.children_system
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])  # its own, and of its children that have ended
    return total
