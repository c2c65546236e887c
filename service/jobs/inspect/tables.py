"""What an inspection tells of a job's tables: dimensions at a version, their changes, the output.

Questions come as one JSON object, because keys are data and a command line is seen by everybody.
Answers are JSON values; with `arrow`, the rows are an Arrow stream in base64 instead.
"""

from collections.abc import Callable
from pathlib import Path

from joins.adapters.delta.log import DeltaLog
from joins.dimension.changelog_scan import DimensionStates, PageLimit
from joins.dimension.changes import changes_between
from joins.durable.checkpoint import Checkpoint
from joins.durable.pins import PinStore
from joins.plan.errors import QuestionError, UnknownDimensionError, UnknownVersionError
from joins.plan.plan import Dimension
from service.config import Settings
from service.jobs.inspect.history_answers import key_history
from service.jobs.inspect.output_rows import show_output
from service.jobs.inspect.past import plan_of
from service.jobs.inspect.table_answers import (
    PAGE_BYTES,
    Answer,
    Question,
    by_key,
    changed_rows,
    described,
    row_page,
)
from service.jobs.inspect.table_keys import PageCursor
from service.jobs.store.layout import JobLayout


class JobTables:
    """The tables of the job in `job_dir`, read only, with a runner or without one."""

    def __init__(self, job_dir: Path) -> None:
        self._layout = JobLayout(job_dir)
        self._plan = plan_of(self._layout)
        self._settings = Settings.of_runner(job_dir)

    def answer(self, question: Question) -> Answer:
        """What `question["what"]` asks for.

        Raises:
            SluiceError: it cannot be answered.
        """
        answers: dict[str, Callable[[Question], Answer]] = {
            "dimensions": self._dimensions,
            "rows": self._rows,
            "changes": self._changes,
            "history": lambda history: key_history(self._of(history["table"]), history),
            "preview": lambda preview: show_output(self._layout, self._plan, preview),
        }
        return answers[question["what"]](question)

    # Dimensions
    # ------------------------------------------------------------------------------------------

    def _dimensions(self, _: Question) -> Answer:
        pin = PinStore(Checkpoint(self._layout.checkpoint).pins_directory).newest()
        pinned = {} if pin is None else dict(pin.versions)
        items = [self._dimension(d, pinned.get(d.name)) for d in self._plan.dimensions]
        return {"items": items}

    def _dimension(self, dimension: Dimension, pinned: int | None) -> Answer:
        answer: Answer = {**described(dimension), "pinned_version": pinned}
        states = self._states(dimension)
        try:
            state = states.at()
        except UnknownVersionError:
            return {**answer, "version": None, "oldest_version": None, "complete": False}
        versions = {"version": state.version, "oldest_version": states.oldest()}
        return {**answer, **versions, "complete": state.complete}

    def _rows(self, question: Question) -> Answer:
        states = self._of(question["table"])
        dimension = states.dimension
        cursor = PageCursor.read(question.get("cursor"), dimension, 1)
        state = states.at(question.get("version") if cursor is None else cursor.versions[0])
        answer: Answer = {
            **described(dimension),
            "version": state.version,
            "newest_version": states.newest(),
            "complete": state.complete,
        }
        if question.get("keys") is not None:
            return {**answer, **by_key(states, state, question)}
        limit = PageLimit(question["limit"], PAGE_BYTES)
        page = states.page(state, None if cursor is None else cursor.key, limit)
        return {**answer, **row_page(page, dimension, state, question)}

    def _changes(self, question: Question) -> Answer:
        states = self._of(question["table"])
        dimension = states.dimension
        cursor = PageCursor.read(question.get("cursor"), dimension, 2)
        bounds = (question["from"], question.get("to")) if cursor is None else cursor.versions
        before, after = states.at(bounds[0]), states.at(bounds[1])
        if before.version > after.version:
            raise QuestionError(
                f"version {before.version} is not before version {after.version}",
                hint="Begin with an earlier version; the list of tables has the oldest one.",
            )
        limit = PageLimit(question["limit"], PAGE_BYTES)
        behind = None if cursor is None else cursor.key
        page = changes_between(states, (before, after), behind, limit)
        versions = (before.version, after.version)
        answer: Answer = {
            **described(dimension),
            "from_version": versions[0],
            "to_version": versions[1],
            "complete": before.complete and after.complete,
        }
        return {**answer, **changed_rows(page, dimension, versions, question)}

    def _of(self, name: str) -> DimensionStates:
        for dimension in self._plan.dimensions:
            if dimension.name == name:
                return self._states(dimension)
        known = ", ".join(f'"{d.name}"' for d in self._plan.dimensions)
        raise UnknownDimensionError(
            f'job joins no table "{name}", it joins {known}',
            hint="Use the name that the script gives the table in CREATE TABLE.",
        )

    def _states(self, dimension: Dimension) -> DimensionStates:
        partitions = dimension.source.changelog_partitions or self._settings.changelog_partitions
        log = DeltaLog(self._layout.table(dimension) / "changelog", "")
        return DimensionStates(log, dimension, partitions)
