"""A CDC process under test, spoken to as the runner speaks to it."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from joins.adapters.mysql import binlog as mysql_binlog
from joins.adapters.mysql.position import BinlogMark
from joins.adapters.mysql.sender import CdcConfig
from tests.support.wait import wait_until


class CdcProcess:
    """The process and every event that it told, in order."""

    def __init__(self, config: CdcConfig) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "joins.adapters.mysql.binlog"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.events: list[dict[str, Any]] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._say({"config": config.as_json()})

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))

    def _say(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    @property
    def pid(self) -> int:
        return self._process.pid

    def high(self, mark: BinlogMark, generation: int = 1) -> None:
        place = mark.position
        at = {"epoch": place.epoch, "file": place.file, "pos": place.pos}
        self._say({"high": at, "generation": generation})

    def wait_for(
        self,
        kind: str,
        that: Callable[[dict[str, Any]], bool] = lambda _: True,
        *,
        deadline_s: float = 30,
    ) -> dict[str, Any]:
        def found() -> dict[str, Any] | None:
            return next((e for e in [*self.events] if e["event"] == kind and that(e)), None)

        return wait_until(
            found, deadline_s=deadline_s, what=f'event "{kind}" in {self.events[-3:]}'
        )

    def wait_for_position(self, mark: BinlogMark, *, deadline_s: float = 60) -> None:
        place = (mark.position.file, mark.position.pos)
        self.wait_for(
            "progress",
            lambda e: (e["acknowledged"]["file"], e["acknowledged"]["pos"]) >= place,
            deadline_s=deadline_s,
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        self._say({"stop": True})
        return self._process.wait(timeout=120)

    def end_input(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(timeout=120)

    def exit_code(self) -> int:
        return self._process.wait(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        self._listener.join(timeout=10)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                assert pipe is not None
                pipe.close()


class KeptEvents(mysql_binlog.BinlogProtocol):
    """The events of a binlog session, kept instead of written to standard output."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def tell(self, event: str, value: Mapping[str, Any]) -> None:
        self.events.append({"event": event, **value})

    def find(self, event: str, **members: object) -> dict[str, Any] | None:
        """The last event of that name with these members."""
        named = (each for each in reversed([*self.events]) if each["event"] == event)
        return next((each for each in named if members.items() <= each.items()), None)
