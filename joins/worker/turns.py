"""Turns in which the tasks of a batch send rows: one after the other, as one producer.

The driver has the producer's identity: the id by which a broker knows its records, the epoch by
which it refuses an older one, and the next sequence number of each partition. A task that has
joined its part connects to the driver, whether a resident or a Spark job runs it, and waits until
all tasks before it have sent. It gets the identity for its turn.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark import SparkContext

from joins.plan.errors import SinkError
from joins.worker.channel import Address, Listener, ResidentChannel

_WAIT_S = 300.0  # a turn that does not come: the tasks before it have no slot
_AGAIN = "The batch is run again."
Records = Mapping[int, int]
"""Partition → number of records."""


class Sender(Protocol):
    """The driver's producer; one thread at a time."""

    def admit(self, records: Records) -> Mapping[str, Any]:
        """JSON values by which a task may send these records; SinkError without an answer."""

    def acknowledge(self, records: Records) -> None:
        """These records are there; the next task sends behind them."""


@dataclass(frozen=True, slots=True)
class Turns:
    """How the tasks of one batch reach the driver; picklable."""

    address: Address
    secret: bytes = field(repr=False)
    batch: int  # number of the attempt, which later ones do not share

    @contextmanager
    def turn(self, item: int, records: Records) -> Iterator[Mapping[str, Any]]:
        """Wait for the turn of `item`; at the exit all of its records must be acknowledged.

        Raises SinkError if the batch has no turn for it any more, OSError without a connection.
        """
        place = (self.address, self.secret)
        channel = _channels.pop(place, None) or ResidentChannel.connect(*place)
        try:
            counts = {str(partition): count for partition, count in records.items()}
            request = {"batch": self.batch, "item": item, "records": counts}
            channel.send(json.dumps(request).encode())
            answer: dict[str, Any] = json.loads(channel.receive())
            if "refused" in answer:
                raise _error_of(answer)
            try:
                yield answer
            except SinkError as exc:
                channel.send(_said(exc))
                raise
            channel.send(b"{}")
        except BaseException:
            channel.close()
            raise
        _channels[place] = channel


_channels: dict[tuple[Address, bytes], ResidentChannel] = {}


@dataclass(slots=True)
class _Batch:
    number: int
    next: int = 0  # the item whose turn is next, or now
    is_sending: bool = False
    fault: SinkError | None = None


class SendTurns:
    """Gives the tasks of one batch after the other their turns.

    A task that fails in its turn, or comes twice, fails the batch: what it has sent is unknown.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._changed = threading.Condition()
        self._batch = _Batch(0)
        self._listener: Listener | None = None

    def begin(self, context: SparkContext) -> Turns:
        """For a new batch, or a new attempt; raises SinkError if no task could connect."""
        if self._listener is None:
            try:
                self._listener = Listener(context, "senders", self._serve)
            except OSError as exc:
                raise SinkError(
                    f"tasks cannot connect to the driver: {exc}",
                    hint="Set TMPDIR to a directory with a shorter name.",
                ) from exc
        self.end()
        return Turns(self._listener.address, self._listener.secret, self._batch.number)

    def end(self) -> None:
        """Refuse the tasks that wait for a turn."""
        with self._changed:
            self._batch = _Batch(self._batch.number + 1)
            self._changed.notify_all()

    def _serve(self, channel: ResidentChannel) -> None:
        try:
            while True:
                request = json.loads(channel.receive())
                records = {int(p): int(count) for p, count in request["records"].items()}
                self._take_turn(channel, int(request["batch"]), int(request["item"]), records)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return  # the process of the task has ended
        finally:
            channel.close()

    def _take_turn(
        self, channel: ResidentChannel, number: int, item: int, records: Records
    ) -> None:
        try:
            with self._changed:
                batch = self._begun(number, item)
                granted = self._admitted(batch, records)
        except SinkError as exc:
            channel.send(_said(exc))
            return
        fault: SinkError | None = _lost(item)
        try:
            channel.send(json.dumps(granted).encode())
            answer = json.loads(channel.receive())
            fault = _error_of(answer) if answer else None
        finally:
            with self._changed:
                self._end(batch, item, records, fault)

    def _begun(self, number: int, item: int) -> _Batch:
        batch = self._batch
        if batch.number == number:
            if item < batch.next or (item == batch.next and batch.is_sending):
                batch.fault = batch.fault or _lost(item)
                self._changed.notify_all()
            self._changed.wait_for(
                lambda: batch is not self._batch or batch.fault or batch.next == item, _WAIT_S
            )
        if batch.number != number or batch is not self._batch:
            raise SinkError(f"the batch of task {item} has ended", hint=_AGAIN)
        if batch.fault is not None:
            raise batch.fault
        if batch.next != item:
            raise SinkError(f"task {batch.next} has not sent within {_WAIT_S:g} s", hint=_AGAIN)
        if batch.is_sending:  # another attempt has waited, too, and has the turn
            batch.fault = _lost(item)
            self._changed.notify_all()
            raise batch.fault
        batch.is_sending = True
        return batch

    def _admitted(self, batch: _Batch, records: Records) -> Mapping[str, Any]:
        try:
            return self._sender.admit(records)
        except SinkError as exc:
            batch.fault = exc
            self._changed.notify_all()
            raise

    def _end(self, batch: _Batch, item: int, records: Records, fault: SinkError | None) -> None:
        if fault is not None:
            batch.fault = batch.fault or fault
        elif batch is self._batch:
            self._sender.acknowledge(records)
            batch.next, batch.is_sending = item + 1, False
        self._changed.notify_all()


def _said(error: SinkError) -> bytes:
    text = {"refused": error.message, "hint": error.hint, "detail": error.detail}
    return json.dumps(text).encode()


def _error_of(said: Mapping[str, Any]) -> SinkError:
    return SinkError(said["refused"], hint=said["hint"], detail=said["detail"])


def _lost(item: int) -> SinkError:
    return SinkError(
        f"task {item} has failed while it sent: which of its rows are in the topic is unknown",
        hint=_AGAIN,
    )
