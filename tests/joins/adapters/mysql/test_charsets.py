"""Character sets: what the server converts, we read the same."""

import pytest

from joins.adapters.mysql.charsets import (
    CharacterTable,
    _candidates,
    _characters,
    _converted,
    character_table,
)
from joins.adapters.mysql.connection import connected
from joins.plan.errors import SourceError
from tests.support.sql import cdc_connection


@pytest.fixture(scope="module")
def connection(mariadb):
    with connected(cdc_connection(mariadb, "x", "x")) as opened:
        yield opened


KNOWN = {
    "sjis_wave_of_the_server": ("sjis", "815f", "\\"),
    "cp932": ("cp932", "815f", "\uff3c"),
    "euckr_beyond_ks_x_1001": ("euckr", "8c63", "똠"),
    "ujis_three_bytes": ("ujis", "8fb0a1", "丂"),
    "swe7_is_no_ascii": ("swe7", "405b", "ÉÄ"),
    "latin1_is_windows_1252": ("latin1", "80818d", "€\x81\x8d"),
    "half_of_a_character": ("gbk", "61", "a"),
    "bytes_without_a_character": ("greek", "d2ff41", "??A"),
}


@pytest.mark.parametrize(("charset", "raw", "text"), KNOWN.values(), ids=KNOWN)
def test_a_text_is_what_the_server_makes_of_it(connection, charset, raw, text):
    table = character_table(connection, charset)
    assert table.text(bytes.fromhex(raw)) == text


@pytest.mark.parametrize(("charset", "most"), [("sjis", 2), ("ujis", 3), ("swe7", 1)])
def test_no_sequence_of_bytes_is_left_out(connection, charset, most):
    table = character_table(connection, charset)
    for sequence in list(_candidates(most))[:: 1 if most == 1 else 61]:
        (_, text), *_ = _converted(connection, charset, [sequence])
        if sequence in table.characters:
            assert table.characters[sequence] == text.decode("utf-8")
            assert table.text(sequence + sequence) == text.decode("utf-8") * 2


def test_a_server_that_gives_nothing_for_a_part_is_asked_one_by_one(connection):
    """MySQL gives NULL for a whole text of which a part is no character."""
    sequences = list(_candidates(2))[9000:9350]
    together = dict(_characters(connection, "big5", sequences))
    apart = dict(_characters(connection, "big5", [*sequences, b"\n"]))  # one more line
    assert len(together) > 100
    assert apart == {**together, b"\n": "\n"}


def test_a_character_set_that_the_server_does_not_have_is_refused(connection):
    with pytest.raises(SourceError, match='"dingbats"'):
        character_table(connection, "dingbats")


def test_a_lead_byte_alone_is_no_character():
    table = CharacterTable({b"a": "a", b"\x81\x40": "丂", b"?": "?"})
    assert table.text(b"\x81\x40a\x81") == "丂a?"
    assert table.text(b"\x81a?") == "?a?"
