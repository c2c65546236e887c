"""No type of event in a binlog is passed over that is not known to change no table."""

import pytest
from pymysqlreplication.event import NotImplementedEvent

from joins.adapters.mysql.events.packets import EVENTS, HARMLESS, Packets, require_known
from joins.adapters.mysql.tokens import decoded
from joins.plan.errors import SnapshotNeededError

MADE = Packets._BinLogPacketWrapper__event_map
KNOWN = (
    *(2, 4, 15, 16, 18, 19, 23, 24, 25, 27, 30, 31, 32, 33, 34, 38, 39, 40, 42, 162),
    *range(165, 173),
)


@pytest.mark.parametrize("number", range(256))
def test_an_event_is_known_or_refused_by_the_name_of_its_type(number):
    if number in KNOWN or number in HARMLESS:
        require_known(number)
        return
    with pytest.raises(SnapshotNeededError, match=f"type {number}\\b") as caught:
        require_known(number)
    assert "copied again" in caught.value.hint


def test_what_the_library_keeps_to_itself_is_harmless():
    kept = {number for number, kind in MADE.items() if kind not in EVENTS}
    assert kept <= HARMLESS.keys()


def test_what_the_library_does_not_know_comes_to_us():
    assert NotImplementedEvent in EVENTS


TEXTS = {
    "utf8": ("TRUNCATE é".encode(), "utf8mb4", "TRUNCATE é"),
    "latin1": ("TRUNCATE é".encode("latin1"), "latin1", "TRUNCATE é"),
    "trail_byte_like_a_backslash": (
        "DROP TABLE `ソ`".encode("shift_jis"),
        "sjis",
        "DROP TABLE `ソ`",
    ),
    "character_set_without_a_codec": (b"DROP TABLE t", "dec8", "DROP TABLE t"),
    "bytes_of_one": ("é".encode("latin1"), "dec8", "\ufffd é"),
    "no_utf8": (b"COMMENT '\xff'", "utf8mb4", "COMMENT '\ufffd'"),
    "no_gbk": (b"COMMENT '\xff'", "gbk", "\ufffd COMMENT 'ÿ'"),
}


@pytest.mark.parametrize(("data", "charset", "text"), TEXTS.values(), ids=TEXTS)
def test_a_statement_is_read_in_the_character_set_of_its_session(data, charset, text):
    assert decoded(data, charset) == text
