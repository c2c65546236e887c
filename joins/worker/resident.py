"""The part of a resident pool inside its Spark tasks: each serves calls until it is ended."""

import json
import os
import pickle
import traceback
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from pyspark import TaskContext

from joins.worker.channel import Address, Channel
from joins.worker.work import StageRun

T = TypeVar("T")
KEPT_PIECES = 64
"""Pieces of stages that a resident keeps; both sides forget the oldest by the same rule."""


@dataclass(slots=True)
class Newest(Generic[T]):
    """The values used last, by key; driver and resident use the same keys in the same order."""

    size: int = KEPT_PIECES
    _values: OrderedDict[Any, T] = field(default_factory=OrderedDict)

    def get(self, key: object) -> T | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: object, value: T) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self.size:
            self._values.popitem(last=False)


@dataclass(frozen=True, slots=True)
class CallHead:
    """The call of one item, as JSON ahead of its new pieces.

    `pieces` are the digests of the parts of the stage; `new` has the sizes of those that follow.
    `names` are those of the last parts: the keywords of a partial function.
    """

    call: int
    attempt: int
    item: int
    text: str
    pieces: Sequence[str]
    names: Sequence[str]
    new: Mapping[str, int]


def frame_of(head: Mapping[str, Any], *bodies: bytes) -> bytes:
    return b"\n".join((json.dumps(head).encode(), b"".join(bodies)))


def _head_of(frame: bytes) -> tuple[dict[str, Any], memoryview]:
    end = frame.index(b"\n")
    return json.loads(frame[:end]), memoryview(frame)[end + 1 :]


@dataclass(slots=True)
class _Piece:
    pickled: bytes
    value: Any = None


@dataclass(frozen=True, slots=True)
class Resident:
    """What a task of the pool's Spark job does; picklable. It yields nothing."""

    address: Address
    secret: bytes = field(repr=False)

    def __call__(self, slots: Iterable[int]) -> Iterator[str]:
        for slot in slots:
            self.serve(slot)
        yield from ()

    def serve(self, slot: int) -> None:
        """Serve calls until the driver ends it; ChannelError, OSError if the connection ends.

        Then Spark starts the task again.
        """
        channel = Channel.connect(self.address, self.secret)
        try:
            channel.send(json.dumps({"slot": slot, "pid": os.getpid()}).encode())
            pieces = Newest[_Piece]()
            while True:
                head, body = _head_of(channel.receive())
                if head.get("end"):
                    return
                channel.send(json.dumps(_answer(CallHead(**head), body, pieces)).encode())
        finally:
            channel.close()


def _answer(head: CallHead, body: memoryview, pieces: Newest[_Piece]) -> dict[str, Any]:
    given, at = list[_Piece](), 0
    for digest in head.pieces:
        piece = pieces.get(digest)
        if piece is None:
            size = head.new[digest]
            piece, at = _Piece(bytes(body[at : at + size])), at + size
            pieces.put(digest, piece)
        given.append(piece)
    try:
        _enter(head)
        run = _run_of([_value(piece) for piece in given], head.names)
        return {"call": head.call, "texts": list(run([head.text]))}
    except Exception:  # whatever a stage raises, the driver gets
        return {"call": head.call, "error": traceback.format_exc()}


def _value(piece: _Piece) -> Any:  # noqa: ANN401 (what was pickled)
    if piece.value is None:
        piece.value = pickle.loads(piece.pickled)
    return piece.value


def pieces_of(run: StageRun) -> tuple[list[Any], list[str]]:
    """What `run` consists of, and the keywords of its last parts: most are the same each time."""
    stage = run.stage
    if not isinstance(stage, partial):
        return [run.read, stage], []
    keywords = stage.keywords
    return [run.read, stage.func, *stage.args, *keywords.values()], list(keywords)


def _run_of(pieces: Sequence[Any], names: Sequence[str]) -> StageRun:
    read, stage, *arguments = pieces
    if arguments:
        split = len(arguments) - len(names)
        keywords = dict(zip(names, arguments[split:], strict=True))
        stage = partial(stage, *arguments[:split], **keywords)
    return StageRun(read, stage)


def _enter(head: CallHead) -> None:
    """Give Spark's context of this task the numbers of the call, for names of files and retries."""
    context: Any = TaskContext.get()
    if context is not None:
        context._partitionId = head.item
        context._taskAttemptId = head.call
        context._attemptNumber = head.attempt
