"""Work in threads: while a block runs, or in several at the same moment."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def beside(*works: Callable[[Event], object]) -> Iterator[None]:
    """Run each of `works` in a thread; it ends when its event is set, which the block's end does.

    What one of them raises is raised at the end of a block that has not failed itself.
    """
    ended = Event()
    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(work, ended) for work in works]
        try:
            yield
        finally:
            ended.set()
    for each in running:
        each.result()


class RunsBeside(ABC):
    """Runs in a thread while it is entered."""

    def __enter__(self) -> Self:
        self._beside = beside(self._run)
        self._beside.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._beside.__exit__(kind, error, trace)

    @abstractmethod
    def _run(self, ended: Event) -> None:
        """What goes on until then."""


def at_once(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """What `work` gives for each of `items`: threads that begin at the same moment."""
    start = Barrier(len(items))

    def begin(item: T) -> R:
        start.wait()
        return work(item)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(begin, items))
