"""A job with event time that has run batches, made without Spark and Kafka; its state is Delta."""

from dataclasses import replace
from functools import partial

from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.state_log import StateChange, StateLog
from joins.batch.event_stages import WAITING_COLUMNS, WINDOW_COLUMNS
from joins.batch.event_state import EventState
from joins.durable.checkpoint import Checkpoint, JobMeta, write_json_atomically
from joins.durable.pins import EventPin, PinStore
from joins.kernels.index.index import DimensionIndex
from joins.kernels.probe.event_times import LATE_RECORDS
from joins.kernels.probe.probe import DEAD_LETTERS
from joins.lookback.event_replay import EventReplay
from joins.lookback.history import History, HistoryPlaces, PastEvent
from joins.worker.event_task import waiting_schema, windows_schema
from tests.support.event_batches import EventJob

APP_ID = "sluice:job:1"


class PastEventJob:
    """A job whose batches are run and committed to the tables of its state, each with its pin."""

    def __init__(self, plan, root):
        self.job = EventJob(plan, root)
        places, task = self.job.task.places, self.job.task
        self.logs = {}
        if places.waiting:
            self.logs["waiting"] = state(places.waiting, waiting_schema(task), WAITING_COLUMNS)
        if places.windows:
            self.logs["windows"] = state(places.windows, windows_schema(task), WINDOW_COLUMNS)
        self.event = PastEvent(plan, places)
        self.late = table(places.late.root, LATE_RECORDS, f"{APP_ID}:late")
        table(task.dead_letters, DEAD_LETTERS, APP_ID)
        self.checkpoint = Checkpoint(root / "checkpoint")
        self.checkpoint.write_meta(JobMeta("1", 2, "clicks", "id", {0: 0, 1: 0}, {}))
        self.pins = PinStore(self.checkpoint.pins_directory)
        self.replay = EventReplay(self.event, task.kernel, APP_ID)
        self.indexes = {
            alias: DimensionIndex.attach(place.directory, 1, place.spec)
            for alias, place in task.probe.indexes.items()
        }
        self.state = EventState()
        self.done = []

    def run(self, arrived):
        """Run a batch of these records, replay it, and commit its state."""
        versions = {name: log.version() for name, log in self.logs.items()}
        before = self._files()
        outcome = self.job.run(arrived)
        event = {**self.state.as_json(), "clock_ms": self.job.pin.event.clock_ms}
        event |= {"at_end": [], "dimensions": {}, "state_versions": versions}
        pin = replace(self.job.pin, event=EventPin.of(event))
        self.pins.create(pin)
        self.done.append((pin, list(self.job.frames), outcome))
        again = self.again(-1)
        self.state, after = again.after, self._files()
        for name, log in self.logs.items():
            added = [file for path, file in after[name].items() if path not in before[name]]
            gone = sorted(set(before[name]) - set(after[name]))
            log.commit(pin.batch, 2, StateChange(added, gone, self.state.as_json()))
        if self.job.late_files:
            self.late.commit(pin.batch, 2, self.job.late_files, {})
        write_json_atomically(self.checkpoint.directory / "progress.json", {"batch": pin.batch})

    def history(self):
        plan, task, root = self.job.plan, self.job.task, self.job.root
        places = HistoryPlaces(
            app_id=APP_ID,
            checkpoint=self.checkpoint,
            kernel=task.kernel,
            roles=task.probe.indexes,
            tables={},
            dimensions={each.name: each for each in plan.dimensions},
            dead_letters=task.dead_letters,
            replays=root / "replays",
            output=None,
            probe_kafka=plan.probe.source.kafka,
            sink=plan.sink,
            event=self.event,
        )
        return History(places)

    def again(self, at):
        pin, frames, _ = self.done[at]
        return self.replay.run(pin, partial(iter, frames), self.indexes)

    def _files(self):
        kinds = {"waiting": self.job.waiting, "windows": self.job.windows}
        return {
            name: {file.path: file for files in kept.values() for file in files}
            for name, kept in kinds.items()
        }


def state(path, schema, columns):
    StateLog.create(path, schema)
    return StateLog(DeltaLog(path, f"{APP_ID}:{path.name}"), columns)


def table(path, schema, app_id):
    create_table(path, schema)
    return DeltaLog(path, app_id)
