"""What the process of a topic remembers of each key, in files beside its journal.

`KeyMemory` completes a record from earlier ones of its key, and refuses one that contradicts them.
Only the files that a source needs are written; g is a generation, n counts replacements of a file:

    row-keys-g                  keys of snapshot rows, if they are counted
    place-keys-g                partition of the key's first record, if the topic has several
    owners-g-n                  table partition that has its row, with 'source.table-pattern'
    row-times-n, row-offsets-n  rowtime of its newest row, and offset of its newest change
    values-n, values-places-n   its newest large values, where the database may not send them
"""

import glob
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from joins.adapters.topic.appended_file import AppendedFile, KeyFile, TimeFile
from joins.adapters.topic.decoding import partitions_of
from joins.adapters.topic.feed_state import FileCounts, Numbered, TopicFeedConfig
from joins.adapters.topic.kept_values import ValueFile
from joins.kernels.debezium.options import UnsentValues, debezium_options
from joins.kernels.topic.keys import DeletionTimes, foreign_keys, key_hashes
from joins.kernels.topic.pieces import Action, ChangePiece, Mask, snapshot_rows
from joins.kernels.topic.unsent import filled_fields
from joins.plan.formats import OF_CHANGES, SOURCE_TIMESTAMP
from joins.plan.plan import declared_fields
from watermark.foreign import SnapshotRules

FILES_OF_KEYS = ("row-keys", "place-keys", "owners", "row-times", "row-offsets", "values")
"""Kinds of all files; `values` includes `values-places`."""


class KeyMemory:
    """The files of the current generation; the session owns it and stores what `save` returns.

    `require_skipped` gets a record (partition, offset), its fault and a hint; it raises
    ForeignRecordError unless an operator has decided to leave the record out.
    """

    def __init__(
        self,
        config: TopicFeedConfig,
        rules: SnapshotRules,
        generation: int,
        counts: FileCounts,
        require_skipped: Callable[[tuple[int, int], str, str], None],
    ) -> None:
        self._config, self._rules = config, rules
        self._require_skipped = require_skipped
        self._deletions = _deletions_of(config)
        self._times = self._offsets = self._values = None
        file, options = config.state_file, dict(config.source.value.options)
        if self._deletions is not None and self._deletions.needs_rows:
            self._times = TimeFile(file.with_suffix(".row-times"), counts.times)
            if rules.replaces:  # only then the topic is read again from an earlier offset
                self._offsets = TimeFile(file.with_suffix(".row-offsets"), counts.time_offsets)
        is_filled = debezium_options(options).unsent_values is UnsentValues.LAST_VERSION
        if is_filled and config.source.value.name in OF_CHANGES:
            self._values = ValueFile(
                file.with_suffix(".values"),
                filled_fields(config.fields, config.primary_key),
                counts.values,
                counts.value_places,
                live=counts.values_live,
            )
        self.begin_generation(generation, counts)

    def begin_generation(self, generation: int, counts: FileCounts | None = None) -> None:
        """Open the files of `generation`; without `counts` they are empty."""
        file, counts = self._config.state_file, counts or FileCounts()
        self._generation = generation
        self._row_keys = KeyFile(file.with_suffix(f".row-keys-{generation}"), counts.counted)
        self._partitions = KeyFile(file.with_suffix(f".place-keys-{generation}"), counts.placed)
        self._owners: TimeFile | None = None
        if partitions_of(dict(self._config.source.value.options)) is not None:
            self._owners = TimeFile(file.with_suffix(f".owners-{generation}"), counts.owners)

    @property
    def row_count(self) -> int:
        """Distinct keys of this generation's snapshot rows; 0 if they are not counted."""
        return len(self._row_keys)

    def save(self) -> FileCounts:
        """Make all entries durable; they are valid once the journal has the result."""
        values, places = ((0, 0), (0, 0)) if self._values is None else self._values.save()
        return FileCounts(
            counted=self._row_keys.save(),
            placed=self._partitions.save(),
            owners=_saved(self._owners),
            times=_saved(self._times),
            time_offsets=_saved(self._offsets),
            values=values,
            value_places=places,
            values_live=0 if self._values is None else self._values.live,
        )

    def take(self, piece: ChangePiece, generations: np.ndarray) -> ChangePiece:
        """Check `piece` and complete it; a record that is left out gets `Action.NOTHING`."""
        is_current = generations == self._generation
        is_change = is_current & (piece.actions != Action.NOTHING)
        is_row = is_current & snapshot_rows(piece)
        if self._rules.counts and is_row.any():
            rows = piece.key.filter(pa.array(is_row))
            self._row_keys.add(key_hashes(rows.columns), 0)
        if is_change.any():
            if self._owners is not None:
                self._check_owners(piece, is_change, self._owners)
            self._check_partitions(piece, is_change)
        return self._with_times(self._with_values(piece))

    def _check_owners(self, piece: ChangePiece, is_change: Mask, owners: TimeFile) -> None:
        """Require that no key has rows in two partitions of the table at once."""
        while True:
            rows = np.flatnonzero(is_change & (piece.actions != Action.NOTHING))
            foreign = foreign_keys(piece, rows, owners)
            if not len(foreign):
                return
            self._leave_out(  # the first one: without it later ones of its key may be right
                piece,
                int(foreign[0]),
                "has a key of which another partition of the table has a row",
                "Declare a PRIMARY KEY that is unique in all partitions, and let "
                "'source.table-pattern' match partitions only, not their parent, in a "
                "new job. Acknowledged, the record is left out.",
            )

    def _check_partitions(self, piece: ChangePiece, is_change: Mask) -> None:
        """Require that each key stays in one partition of the topic."""
        config = self._config
        has_position_as_key = declared_fields(config.fields) != config.fields
        if config.partitions == 1 or has_position_as_key:
            return
        keys = piece.key.filter(pa.array(is_change))
        first = self._partitions.add(key_hashes(keys.columns), piece.partition)
        for row in np.flatnonzero(first != piece.partition).tolist():
            self._leave_out(
                piece,
                int(np.flatnonzero(is_change)[row]),
                f"has a key whose records were in partition {first[row]} before: their order is "
                "undefined",
                "Give records of one primary key one message key and do not add partitions; then "
                "let the connector take a new snapshot into a new topic and submit the job again. "
                "Acknowledged, the record is left out.",
            )

    def _with_values(self, piece: ChangePiece) -> ChangePiece:
        if self._values is None:
            return piece
        while True:
            filled = self._values.fill(piece)
            if not len(filled.unknown):
                self._values.keep(filled)
                return filled.piece
            for row in filled.unknown.tolist():
                self._leave_out(
                    piece,
                    row,
                    "lacks a value that the database did not send, and there is no version of its "
                    "row to take it from",
                    "Let the connector take a new snapshot, or set REPLICA IDENTITY FULL "
                    "for the table; acknowledged, the record is left out.",
                )

    def _with_times(self, piece: ChangePiece) -> ChangePiece:
        if self._deletions is None:
            return piece
        piece, unknown = self._deletions.of(piece, self._times, self._offsets)
        for row in unknown.tolist():
            self._leave_out(
                piece,
                row,
                f'deletes a row and does not say when: it has no "{SOURCE_TIMESTAMP}", nor has a '
                "deletion before it",
                "Declare the time as METADATA FROM 'timestamp' in a new job, which "
                "tombstones have, too; or acknowledge it, and the record is left out.",
            )
        return piece

    def _leave_out(self, piece: ChangePiece, row: int, fault: str, hint: str) -> None:
        self._require_skipped((piece.partition, int(piece.offsets[row])), fault, hint)
        piece.actions[row] = Action.NOTHING


def remove_memory(state_file: Path, generation: int) -> None:
    """Remove the files of all generations, before a topic is read from its beginning."""
    remove_generation(state_file, generation)  # its parts may be in the store alone
    for kind in FILES_OF_KEYS:
        _remove_matching(state_file, f"{kind}-*")


def remove_generation(state_file: Path, generation: int) -> None:
    for kind in ("row-keys", "place-keys"):
        AppendedFile(state_file.with_suffix(f".{kind}-{generation}"), 1, 0).remove()
    _remove_matching(state_file, f"owners-{generation}-*")


def _remove_matching(state_file: Path, pattern: str) -> None:
    for path in state_file.parent.glob(f"{glob.escape(state_file.stem)}.{pattern}"):
        AppendedFile(path, 1, 0).remove()


def _saved(file: TimeFile | None) -> Numbered:
    return (0, 0) if file is None else file.save()


def _deletions_of(config: TopicFeedConfig) -> DeletionTimes | None:
    """None for a table without versions, or with the time in its key (a single version)."""
    if config.rowtime is None or config.rowtime in config.primary_key:
        return None
    keys = {each.name: each.key for each in config.source.metadata}
    return DeletionTimes(config.rowtime, keys.get(config.rowtime))
