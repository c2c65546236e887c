"""Classic bugs, planted one at a time into a copy of the package: the tests must notice each.

`python -m tests.watermark.mutations` plants them all and prints what noticed them.
"""

import importlib
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import hypothesis  # noqa: F401  # loaded once for all children
import pytest

ROOT = Path(__file__).parents[2]
SKIPPED = shutil.ignore_patterns("__pycache__", ".hypothesis")
FAILED = 1
"""Exit status of pytest when tests ran and failed; 2 and above mean that they did not run."""
WRONG_PACKAGE = 99


@dataclass(frozen=True)
class Mutation:
    """Replace `old`, which occurs once in `file`, by `new`; `tests` should then fail."""

    file: str
    old: str
    new: str
    tests: str


LAWS = "tests/support/laws.py"
MUTATIONS = {
    "equality_is_not_late": Mutation(
        "reference/windows/operator.py",
        "self.cleanup_ms(window) <= self.timers.current_watermark_ms",
        "self.cleanup_ms(window) < self.timers.current_watermark_ms",
        "test_windows.py",
    ),
    "lateness_is_not_clamped": Mutation(
        "reference/windows/operator.py",
        "min(window.end_ms - 1 + self.spec.allowed_lateness_ms, MAX_TIMESTAMP)",
        "window.end_ms - 1 + self.spec.allowed_lateness_ms",
        "test_windows.py",
    ),
    "minimum_over_idle_channels": Mutation(
        "combine.py",
        "        if idle:\n            channel.aligned = False\n",
        "        if idle:\n            channel.aligned = True\n",
        "test_valve.py",
    ),
    "minimum_over_channels_in_processing_time": Mutation(
        "combine.py",
        "        channel.processing = True\n        channel.aligned = False\n",
        "        channel.processing = True\n",
        "test_valve.py",
    ),
    "returning_channel_counts_at_once": Mutation(
        "combine.py",
        "channel.timestamp_ms < last.timestamp_ms and not self.laggards_hold_back",
        "False",
        "test_valve.py",
    ),
    "end_of_time_beside_an_idle_channel": Mutation(
        "combine.py",
        "if lowest_ms == MAX_TIMESTAMP and self._not_ended:",
        "if False:",
        "test_gate.py",
    ),
    "all_idle_without_the_maximum": Mutation(
        "combine.py",
        "self.lowest_ms() if self._active else self._maximum()",
        "self.lowest_ms()",
        "test_valve.py",
    ),
    "purge_is_forgotten": Mutation(
        "reference/windows/operator.py",
        "        if result.purges:\n            self._windows.pop(slot, None)\n",
        "",
        "test_triggers.py",
    ),
    "lateness_of_the_unmerged_session": Mutation(
        "reference/windows/operator.py",
        "        for each in merged:\n            window = window.cover(each)\n"
        "        if self.is_window_late(window):\n            return False\n",
        "        if self.is_window_late(window):\n            return False\n"
        "        for each in merged:\n            window = window.cover(each)\n",
        "test_sessions.py",
    ),
    "touching_sessions_stay_apart": Mutation(
        "reference/windows/window.py",
        "self.start_ms <= other.end_ms and self.end_ms >= other.start_ms",
        "self.start_ms < other.end_ms and self.end_ms > other.start_ms",
        "test_sessions.py",
    ),
    "counts_are_lost_at_a_merge": Mutation(
        "reference/windows/triggers.py",
        "context.merge_states(sum)",
        "context.merge_states(max)",
        "test_sessions.py",
    ),
    "end_is_inside_the_window": Mutation(
        "reference/windows/window.py",
        "return clamp(self.end_ms - 1)",
        "return clamp(self.end_ms)",
        "test_windows.py",
    ),
    "remainder_of_negative_times": Mutation(
        "reference/windows/assigners.py",
        "instant_ms - (instant_ms - offset_ms) % size_ms",
        "instant_ms - abs(instant_ms - offset_ms) % size_ms",
        "test_windows.py",
    ),
    "side_output_of_records_that_are_not_late": Mutation(
        "reference/windows/operator.py",
        "if skipped and self.is_record_late(timestamp_ms):",
        "if skipped:",
        "test_windows.py",
    ),
    "state_is_kept_after_the_lateness": Mutation(
        "reference/windows/operator.py",
        "if slot[1] != GLOBAL_WINDOW:",
        "if False:",
        "test_windows.py",
    ),
    "watermark_overtakes_its_results": Mutation(
        "reference/operator.py",
        "            if isinstance(each, Watermark):\n",
        "            self._out.append(each) if isinstance(each, Watermark) else None\n"
        "            if isinstance(each, Watermark):\n",
        "test_windows.py",
    ),
    "timers_do_not_follow_the_clock": Mutation(
        "reference/timers.py",
        "if self.watermark.use_processing_time and self.now_ms > self.current_watermark_ms:",
        "if False:",
        "test_timers.py",
    ),
    "timers_at_the_watermark_wait": Mutation(
        "reference/timers.py",
        "while heap and heap[0] <= now_ms:",
        "while heap and heap[0] < now_ms:",
        "test_timers.py",
    ),
    "bounded_out_of_orderness_without_its_millisecond": Mutation(
        "reference/generators.py",
        "self.delay_ms = bound_ms + 1",
        "self.delay_ms = bound_ms",
        "test_generators.py",
    ),
    "idle_at_the_timeout_already": Mutation(
        "reference/generators.py",
        "now_ms - self._quiet_since_ms > self._timeout_ms",
        "now_ms - self._quiet_since_ms >= self._timeout_ms",
        "test_generators.py",
    ),
    "event_time_after_processing_time": Mutation(
        "reference/outputs.py",
        "elif self.last.use_processing_time:",
        "elif False:",
        "test_emission.py",
    ),
    "processing_time_in_the_future": Mutation(
        "combine.py",
        "if promised_ms > self._clock_ms:",
        "if promised_ms > self._clock_ms + 1:",
        "test_valve.py",
    ),
    "restored_without_timers": Mutation(
        "reference/timers.py",
        "                    queue.add(timestamp_ms, (key, namespace_of(namespace)))\n",
        "                    pass\n",
        "test_timers.py",
    ),
}


def copy(directory: Path) -> Path:
    """The package, its tests and what they share with others, as they are."""
    for part in ("watermark", "tests/watermark"):
        shutil.copytree(ROOT / part, directory / part, ignore=SKIPPED)
    (directory / LAWS).parent.mkdir()
    shutil.copy(ROOT / LAWS, directory / LAWS)
    return directory


def plant(mutation: Mutation, directory: Path) -> Path:
    """A copy of the package and its tests with the bug in it."""
    copy(directory)
    path = directory / "watermark" / mutation.file
    source = path.read_text()
    assert source.count(mutation.old) == 1, f"{mutation.file} has changed: {mutation.old!r}"
    path.write_text(source.replace(mutation.old, mutation.new))
    return directory


def run(tests: str, directory: Path) -> int:
    """Exit status of a file of tests against the package in `directory`, run in a child process.

    The child is a fork of this process, so that pytest is loaded once for all bugs.
    """
    child = os.fork()
    if not child:
        os._exit(_run_in_child(tests, directory))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run_in_child(tests: str, directory: Path) -> int:
    with (directory / "output.txt").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    for name in [each for each in sys.modules if each.split(".")[0] in ("tests", "watermark")]:
        del sys.modules[name]
    os.chdir(directory)
    sys.path[:] = [str(directory), *(each for each in sys.path if each not in ("", str(ROOT)))]
    sys.dont_write_bytecode = True
    status = pytest.main(
        [
            *("-x", "-q", "--no-header", "--tb=line", "--import-mode=importlib"),
            *("-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(directory)),
            str(directory / "tests" / "watermark" / tests),
        ]
    )
    tested = Path(importlib.import_module("watermark").__file__)
    return int(status) if tested.is_relative_to(directory) else WRONG_PACKAGE


def outcome_of(mutation: Mutation) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        directory = plant(mutation, Path(name).resolve())
        status = run(mutation.tests, directory)
        lines = (directory / "output.txt").read_text().splitlines()
    failed = [line for line in lines if line.startswith("FAILED")]
    return {"noticed": status == FAILED and bool(failed), "status": status, "by": failed[:1]}


def status_of_unchanged(tests: str) -> int:
    """Without a bug the tests pass in the same surroundings."""
    with tempfile.TemporaryDirectory() as name:
        return run(tests, copy(Path(name).resolve()))


def main() -> int:
    for tests in sorted({each.tests for each in MUTATIONS.values()}):
        sys.stdout.write(json.dumps({"bug": None, "status": status_of_unchanged(tests)}) + "\n")
        sys.stdout.flush()
    outcomes = {name: outcome_of(mutation) for name, mutation in MUTATIONS.items()}
    for name, outcome in outcomes.items():
        sys.stdout.write(json.dumps({"bug": name, **outcome}) + "\n")
    return sum(not each["noticed"] for each in outcomes.values())


if __name__ == "__main__":
    sys.exit(main())
