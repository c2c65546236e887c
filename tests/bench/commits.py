"""When the changelog of a benchmark's job was committed, and how many rows it took each time."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from joins.adapters.delta.log import DeltaLog
from tests.bench.subject import Subject


@dataclass(frozen=True, slots=True)
class ChangelogCommit:
    """One version of the changelog.

    Attributes:
        rows: that came in with it.
    """

    version: int
    at_ms: int
    rows: int


def changelog_commits(subject: Subject, *, behind: int = -1) -> Sequence[ChangelogCommit]:
    """Those that are still in the log, behind the version `behind`."""
    path = subject.job.directory / "tables" / "user_info" / "changelog"
    log = DeltaLog(path, "bench")
    commits = []
    for version in range(max(behind + 1, log.versions.oldest_entry()), log.version() + 1):
        entry = log.versions.commit_entry(version)
        at_ms = [action["commitInfo"]["timestamp"] for action in entry if "commitInfo" in action]
        added = [action["add"] for action in entry if "add" in action]
        rows = sum(json.loads(add["stats"])["numRecords"] for add in added if add["dataChange"])
        if at_ms:
            commits.append(ChangelogCommit(version, at_ms[0], rows))
    return commits
