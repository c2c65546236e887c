"""Tasks that stay: one long Spark job holds slots, and its tasks serve stage after stage.

Spark places the tasks and starts them again when a worker dies; a stage reaches them by their own
connections, without a Spark job. What the pool cannot serve runs as a Spark job.
"""

import hashlib
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

from joins.worker.channel import Listener, ResidentChannel
from joins.worker.resident import CallHead, Newest, Resident, frame_of, pieces_of
from joins.worker.work import SparkTasks, StageRun, collected, enter_pool, parallelism

_ATTEMPTS = 3
_COME_BACK_S = 10.0  # how long a call without residents waits for Spark to start one again
_POLL_S = 1.0
_HEALTHY_S = 60.0
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.1, 30.0
_END_S, _IDLE_ENDS_S = 5.0, 1.0
_FIRST_CALL = 1 << 40  # stands for the task attempt; above the numbers of Spark's own
_POOL = "resident"
_log = structlog.get_logger(__name__)


class TaskError(PySparkException):
    """A stage has no result: an item's task has failed repeatedly, or the batch was cancelled."""


@dataclass(frozen=True, slots=True)
class _StagePieces:
    """The parts of a stage: their digests in order, and each digest's bytes."""

    digests: tuple[str, ...]
    pickled: dict[str, bytes]
    names: tuple[str, ...]


@dataclass(eq=False, slots=True)
class _Call:
    """One stage over its items; `error` ends it early."""

    pieces: _StagePieces
    texts: list[list[str] | None]
    of: "PoolTasks | None"
    error: Exception | None = None

    @property
    def has_ended(self) -> bool:
        return self.error is not None or None not in self.texts


@dataclass(eq=False, slots=True)
class _Item:
    call: _Call
    number: int
    text: str
    # the item goes to resident `prefers` modulo residents, which then has the same part of the
    # index and of the waiting rows in each batch; None for any
    prefers: int | None
    attempt: int = 0


@dataclass(eq=False, slots=True)
class _Connected:
    """A resident that is connected; only its own thread uses the channel."""

    slot: int
    pid: int
    host: str
    channel: ResidentChannel
    sent: Newest[bool] = field(default_factory=Newest)
    item: _Item | None = None

    @property
    def is_late(self) -> bool:
        return self.item is not None and self.item.call.has_ended


class _Pickles:
    """Pickles parts of stages; frozen ones once, as batch after batch has the same."""

    def __init__(self) -> None:
        self._kept = Newest[tuple[Any, str, bytes]]()
        self._lock = threading.Lock()

    def of(self, run: StageRun) -> _StagePieces:
        values, names = pieces_of(run)
        pairs = [self._pickled(value) for value in values]
        return _StagePieces(tuple(digest for digest, _ in pairs), dict(pairs), tuple(names))

    def _pickled(self, value: object) -> tuple[str, bytes]:
        with self._lock:
            kept = self._kept.get(id(value))
            if kept is not None:
                return kept[1], kept[2]
            pickles: Any = CloudPickleSerializer
            content: bytes = pickles().dumps(value)
            digest = hashlib.sha256(content).hexdigest()
            if _is_frozen(value):
                self._kept.put(id(value), (value, digest, content))  # kept, so its id stays its own
            return digest, content


def _is_frozen(value: object) -> bool:
    parameters: Any = getattr(value, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


class PoolTasks:
    """`Tasks` of one loop on a pool that loops share: `cancel` leaves those of the others."""

    def __init__(self, pool: "ResidentPool") -> None:
        self._pool = pool

    def collected(
        self, run: StageRun, items: Sequence[str], *, has_index: bool = False
    ) -> list[str]:
        return self._pool.collected(run, items, has_index=has_index, of=self)

    def cancel(self) -> None:
        self._pool.cancel(self)


class ResidentPool:
    """`Tasks` by `size` residents; `start` and `close` once each.

    A resident that has not answered within `timeout_s` is given up with the pool's Spark job, which
    begins again.
    """

    def __init__(self, spark: SparkSession, size: int, *, timeout_s: float) -> None:
        self.size = size
        self._session = spark
        self._spark = SparkTasks(spark)
        self._timeout_s = timeout_s
        self._changed = threading.Condition()
        self._waiting: deque[_Item] = deque()
        self._calls: set[_Call] = set()
        self._residents: dict[int, _Connected] = {}
        self._pickles = _Pickles()
        self._next_call = _FIRST_CALL
        self._is_closed = False
        self._listener: Listener | None = None
        self._group = f"residents-{id(self)}"
        self._holding: threading.Thread | None = None

    @property
    def pids(self) -> dict[int, int]:
        """Slot → process of each resident that is connected."""
        with self._changed:
            return {slot: each.pid for slot, each in self._residents.items()}

    def start(self) -> None:
        """Begin to start the residents; a stage runs as a Spark job until enough are connected."""
        try:
            self._listener = Listener(self._session.sparkContext, "residents", self._serve)
        except OSError as exc:
            _log.warning("there are no resident tasks: nothing can connect", error=str(exc))
            return
        resident = Resident(self._listener.address, self._listener.secret)
        self._holding = threading.Thread(
            target=self._hold, args=(resident,), name="residents' job", daemon=True
        )
        self._holding.start()

    def close(self) -> None:
        """End the residents and the pool's Spark job, and remove its socket."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self.cancel()
        if self._listener is not None:
            self._listener.close()
        if self._holding is not None:
            self._holding.join(_IDLE_ENDS_S)  # idle residents end by themselves
            if self._holding.is_alive():
                self._cancel_job()
                self._holding.join(_END_S)

    def cancel(self, of: PoolTasks | None = None) -> None:
        """Let the calls that run now fail: all, or those `of` one loop."""
        with self._changed:
            for call in self._calls:
                if of is None or call.of is of:
                    call.error = TaskError("the tasks of this batch were cancelled")
            self._changed.notify_all()

    def collected(
        self,
        run: StageRun,
        items: Sequence[str],
        *,
        has_index: bool = False,
        of: PoolTasks | None = None,
    ) -> list[str]:
        if not items:
            return []
        if not self._can_serve(len(items)):
            return self._spark.collected(run, items, has_index=has_index)
        call = _Call(self._pickles.of(run), [None] * len(items), of)
        if not self._has_served(call, items, has_index=has_index):
            return self._spark.collected(run, items, has_index=has_index)
        if call.error is not None:
            raise call.error
        return [text for texts in call.texts for text in texts or ()]

    # The caller's side
    # ----------------------------------------------------------------------------------------

    def _can_serve(self, items: int) -> bool:
        """False if a Spark job would have more slots than there are residents.

        A resident does not count while it is busy with a call that was cancelled.
        """
        with self._changed:
            serving = sum(1 for each in self._residents.values() if not each.is_late)
        return serving > 0 and min(items, parallelism(self._session)) <= serving

    def _has_served(self, call: _Call, items: Sequence[str], *, has_index: bool) -> bool:
        """Wait until `call` has ended; False if all residents are gone and none comes back."""
        with self._changed:
            if self._is_closed:
                return False
            self._calls.add(call)
            self._waiting.extend(
                _Item(call, n, text, n if has_index else None) for n, text in enumerate(items)
            )
            self._changed.notify_all()
            try:
                while not call.has_ended:
                    if not self._residents and not self._changed.wait_for(
                        lambda: call.has_ended or self._residents, _COME_BACK_S
                    ):
                        return False
                    self._changed.wait_for(lambda: call.has_ended or not self._residents)
                return True
            finally:
                if not call.has_ended:
                    call.error = TaskError("all resident tasks have ended")
                self._calls.discard(call)
                self._waiting = deque(each for each in self._waiting if each.call is not call)

    # Spark's job
    # ----------------------------------------------------------------------------------------

    def _hold(self, resident: Resident) -> None:
        """Keep the Spark job of the residents running."""
        context, pause_s = self._session.sparkContext, 0.0
        enter_pool(self._session, _POOL)
        context.setJobGroup(self._group, "resident tasks", interruptOnCancel=True)
        while not self._is_closed:
            began = time.monotonic()
            try:
                collected(context, self.size, (), resident)
            except Exception as exc:  # of whatever kind, batches run as Spark jobs meanwhile
                if self._is_closed:
                    return
                _log.warning("the job of the resident tasks has ended", error=str(exc)[:500])
            is_healthy = time.monotonic() - began > _HEALTHY_S
            pause_s = (
                _PAUSE_MIN_S if is_healthy else min(max(_PAUSE_MIN_S, 2 * pause_s), _PAUSE_MAX_S)
            )
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, pause_s)

    def _cancel_job(self) -> None:
        try:
            self._session.sparkContext.cancelJobGroup(self._group)
        except (PySparkException, Py4JError, OSError) as exc:  # also a JVM that is gone
            _log.warning("the job of the resident tasks was not cancelled", error=str(exc))

    # Residents
    # ----------------------------------------------------------------------------------------

    def _serve(self, channel: ResidentChannel) -> None:
        link = channel.link
        link.settimeout(self._timeout_s)
        try:
            hello = json.loads(channel.receive())
            peer = link.getpeername()
            host = "" if isinstance(peer, (str, bytes)) else str(peer[0])
            resident = _Connected(int(hello["slot"]), int(hello["pid"]), host, channel)
        except (OSError, ValueError, KeyError, TypeError):
            channel.close()
            return
        with self._changed:
            self._residents[resident.slot] = resident  # Spark has given an older one up
            self._changed.notify_all()
        try:
            self._give_items(resident)
        finally:
            channel.close()
            with self._changed:
                if self._residents.get(resident.slot) is resident:
                    del self._residents[resident.slot]
                self._changed.notify_all()

    def _give_items(self, resident: _Connected) -> None:
        while (item := self._next(resident)) is not None:
            try:
                answer = self._answer_to(resident, item)
                texts = [] if "error" in answer else [str(text) for text in answer["texts"]]
            except TimeoutError:
                with self._changed:
                    self._residents.clear()  # the end of the job ends all of them
                self._failed(item, f"a task has not answered within {self._timeout_s:g} s")
                self._cancel_job()
                return
            except Exception as exc:  # whatever it is, another resident gets the item
                self._failed(item, f"the process of a task has ended: {exc!r}")
                return
            if "error" in answer:
                self._failed(item, str(answer["error"]))
                continue
            with self._changed:
                resident.item = None
                item.call.texts[item.number] = texts
                self._changed.notify_all()
        if self._is_closed:
            with suppress(OSError):
                resident.channel.send(frame_of({"end": True}))

    def _next(self, resident: _Connected) -> _Item | None:
        """The next item for `resident`; None if it has ended or is not needed any more."""
        with self._changed:
            while True:
                if self._is_closed or self._residents.get(resident.slot) is not resident:
                    return None
                if resident.channel.has_ended():
                    return None
                resident.item = self._chosen(resident) if self._waiting else None
                if resident.item is not None:
                    self._waiting.remove(resident.item)
                    return resident.item
                self._changed.wait(_POLL_S)

    def _chosen(self, resident: _Connected) -> _Item:
        on_host = Counter[str]()
        turns: list[tuple[int, str, int]] = []  # the first of each host, then the second of each
        for slot, each in sorted(self._residents.items()):
            turns.append((on_host[each.host], each.host, slot))
            on_host[each.host] += 1
        mine = [slot for _, _, slot in sorted(turns)].index(resident.slot)
        for item in self._waiting:
            if item.prefers is None or item.prefers % len(turns) == mine:
                return item
        return self._waiting[0]  # it does not wait for a resident that is busy

    def _answer_to(self, resident: _Connected, item: _Item) -> dict[str, Any]:
        pieces = item.call.pieces
        new = dict[str, bytes]()
        for digest in pieces.digests:
            if resident.sent.get(digest) is None:
                resident.sent.put(digest, value=True)
                new[digest] = pieces.pickled[digest]
        with self._changed:
            self._next_call += 1
            number = self._next_call
        head = CallHead(
            call=number,
            attempt=item.attempt,
            item=item.number,
            text=item.text,
            pieces=pieces.digests,
            names=pieces.names,
            new={digest: len(content) for digest, content in new.items()},
        )
        resident.channel.send(frame_of(asdict(head), *new.values()))
        while True:  # an answer to an earlier call comes twice, or after that call was given up
            answer: dict[str, Any] = json.loads(resident.channel.receive())
            if answer["call"] == number:
                return answer

    def _failed(self, item: _Item, why: str) -> None:
        with self._changed:
            item.attempt += 1
            if item.attempt >= _ATTEMPTS:
                text = f"a task has failed {item.attempt} times, the last time by:\n{why}"
                item.call.error = item.call.error or TaskError(text)
            elif not item.call.has_ended:
                self._waiting.appendleft(item)
            self._changed.notify_all()
