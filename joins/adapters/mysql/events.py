"""Types of events in the binlogs of MySQL and MariaDB: which ones we can pass, and why."""

from joins.plan.errors import SnapshotNeededError

_COPIED_AGAIN = "; the table is copied again by itself."
# They begin a transaction; what else they say, such as a tag, is nothing to us.
GTIDS = frozenset({33, 34, 42, 162})
# The stream understands them.
_UNDERSTOOD = GTIDS | {2, 4, 15, 16, 18, 19, 23, 24, 25, 27, 30, 31, 32, 38, 172}
# They change no table by themselves.
HARMLESS = {
    3: "STOP_EVENT",
    5: "INTVAR_EVENT",  # of the statement behind it, which is judged; 13 and 14, too
    9: "APPEND_BLOCK_EVENT",  # of a LOAD DATA, which is judged when it is carried out; 11, 17, too
    11: "DELETE_FILE_EVENT",
    13: "RAND_EVENT",
    14: "USER_VAR_EVENT",
    17: "BEGIN_LOAD_QUERY_EVENT",
    28: "IGNORABLE_LOG_EVENT",
    29: "ROWS_QUERY_LOG_EVENT",
    35: "PREVIOUS_GTIDS_LOG_EVENT",
    36: "TRANSACTION_CONTEXT_EVENT",
    37: "VIEW_CHANGE_EVENT",
    41: "HEARTBEAT_LOG_EVENT_V2",
    160: "ANNOTATE_ROWS_EVENT",
    161: "BINLOG_CHECKPOINT_EVENT",
    163: "GTID_LIST_EVENT",
    164: "START_ENCRYPTION_EVENT",
}
_UNREADABLE = {
    26: ("an incident: changes were lost", f"Nothing is to be done{_COPIED_AGAIN}"),
    39: ("partial JSON updates", f"Set binlog_row_value_options to nothing{_COPIED_AGAIN}"),
    40: ("compressed transactions", f"Set binlog_transaction_compression=OFF{_COPIED_AGAIN}"),
    **dict.fromkeys(
        range(165, 172), ("compressed events", f"Set log_bin_compress=OFF{_COPIED_AGAIN}")
    ),
}


def require_known(event_type: int) -> None:
    """Refuse what may have changed the table in a way that we cannot read.

    Args:
        event_type: the number in the event's header.

    Raises:
        SnapshotNeededError: events of that type cannot be read, or are not known.
    """
    if event_type in _UNDERSTOOD or event_type in HARMLESS:
        return
    if event_type in _UNREADABLE:
        what, hint = _UNREADABLE[event_type]
        raise SnapshotNeededError(
            f"the binlog has {what} (event type {event_type}), which cannot be read", hint=hint
        )
    raise SnapshotNeededError(
        f"the binlog has an event of type {event_type}, which is not known",
        hint=f"Report it with the server's version, and turn off there what writes it"
        f"{_COPIED_AGAIN}",
    )
