"""The prompt of `sluice sql`: lines until a semicolon, with history and completion."""

import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

from service.cli.conversation import Conversation
from service.cli.output import place_of, say, say_error
from service.sql.text.dialect import pieces
from service.sql.text.script import SqlError, masked
from watermark.errors import SluiceError

_FIRST, _NEXT = "sluice> ", "     -> "
_MOST_KEPT = 1000
_LEAVES = ("quit", "exit")
_PLACE = re.compile(r"^line \d+, column \d+: ")  # counts all declarations; the caret is enough
_HELP = """\
Statements end with a semicolon:
  CREATE TABLE, CREATE VIEW, DROP, SET, RESET   apply to the following statements
  CREATE SHARED TABLE   maintains a copy for all later scripts; DROP TABLE removes it
  SHOW TABLES | VIEWS | FUNCTIONS | JOBS, DESCRIBE name, EXPLAIN statement
  SELECT …          runs a bounded job, shows its rows and removes it
  INSERT INTO …     submits a job and prints its id
  STOP JOB 'id'
quit leaves the prompt; Ctrl-C clears the input or stops a preview. Jobs keep running."""
_KEYWORDS = (
    "AND AS BEGIN BETWEEN BIGINT BOOLEAN BY BYTES CASE CAST COMMENT CREATE DATE DECIMAL DESCRIBE "
    "DOUBLE DROP ELSE END ENFORCED EXECUTE EXISTS EXPLAIN FALSE FLOAT FOR FROM FUNCTIONS GROUP "
    "HAVING HOP IF IN INNER INSERT INT INTERVAL INTO IS JOB JOBS JOIN KEY LATERAL LEFT LIKE LIMIT "
    "METADATA NOT NULL OF ON OR PRIMARY RESET SELECT SESSION SET SHARED SHOW SMALLINT STATEMENT "
    "STOP STRING SYSTEM_TIME TABLE TABLES TEMPORARY THEN TIME TIMESTAMP TIMESTAMP_LTZ TINYINT TRUE "
    "TUMBLE VARCHAR VIEW VIEWS VIRTUAL WATERMARK WHEN WHERE WITH"
)


def _library() -> ModuleType | None:
    try:
        return import_module("readline")
    except ImportError:
        return None


def history_file() -> Path:
    """The file of the history, in which credentials are masked."""
    state_home = os.environ.get("XDG_STATE_HOME")
    return (Path(state_home) if state_home else Path.home() / ".local/state") / "sluice/sql_history"


def completions(text: str, names: Iterable[str], columns: Iterable[str] = ()) -> list[str]:
    """Completions of `text`: keywords in its case, names, columns; after a dot columns only."""
    table, dot, beginning = text.rpartition(".")
    if dot:
        upper = beginning.upper()
        own = (name for name in sorted(set(columns)) if name.upper().startswith(upper))
        return [f"{table}.{name}" for name in own]
    words = _KEYWORDS.split() if text[:1].isupper() or not text else _KEYWORDS.lower().split()
    upper = text.upper()
    keywords = [word for word in words if word.upper().startswith(upper)]
    every = sorted({*names, *(columns if text else ())})
    return [*keywords, *(name for name in every if name.upper().startswith(upper))]


def is_whole(text: str) -> bool:
    """Whether `text` ends with a complete statement; strings and comments may span lines."""
    try:
        statements = pieces(text)
    except SqlError:
        return False
    return bool(statements) and statements[-1].closed_at is not None


class Prompt:
    """Reads statements until the end of input and executes them; errors do not end it."""

    def __init__(self, talk: "Conversation", read: Callable[[str], str] = input) -> None:
        self._talk = talk
        self._read = read
        self._readline = _library() if read is input else None
        self._candidates: list[str] = []

    def run(self) -> None:
        say("Statements end with a semicolon. Type help for help, quit to leave.")
        self._begin()
        text = ""
        while True:
            try:
                line = self._read(_NEXT if text else _FIRST)
            except EOFError:
                say("")
                return
            except KeyboardInterrupt:
                text = ""
                say("")
                continue
            word = line.strip().rstrip(";").lower()
            if not text and word in _LEAVES:
                return
            if not text and word in ("help", "?"):
                say(_HELP)
                continue
            text = f"{text}{line}\n" if text or line.strip() else ""
            if is_whole(text):
                self._carry_out(text)
                text = ""

    def _carry_out(self, text: str) -> None:
        self._remember(text)
        try:
            self._talk.carry_out(text)
        except SluiceError as exc:
            say_error(_PLACE.sub("", exc.message), exc.hint, place_of(exc))
        except KeyboardInterrupt:
            say("interrupted")
        sys.stdout.flush()

    def _begin(self) -> None:
        readline = self._readline
        if readline is None:
            return
        readline.set_completer(self._complete)
        readline.set_completer_delims(" \t\n`(),;='<>+-*/%|")
        readline.parse_and_bind("tab: complete")
        readline.set_auto_history(False)
        with suppress(OSError):
            readline.read_history_file(history_file())

    def _complete(self, text: str, place: int) -> str | None:
        if place == 0:
            self._candidates = completions(text, self._talk.names, self._talk.columns())
        return self._candidates[place] if place < len(self._candidates) else None

    def _remember(self, text: str) -> None:
        """Add the input to the history, as one line, in a private file."""
        readline = self._readline
        if readline is None:
            return
        readline.add_history(" ".join(masked(text).split()))
        readline.set_history_length(_MOST_KEPT)
        path = history_file()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            readline.write_history_file(path)
