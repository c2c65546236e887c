"""Positions of sources: how they are written, and which pinned positions have them."""

import pytest

from joins.plan.errors import RequestError
from joins.plan.positions import TokenKind, token_of

UUID, OTHER = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"
BINLOG = {"file": "binlog.000009", "pos": 500, "gtid": "0-1-70,2-5-9"}
MYSQL = {"file": "binlog.000001", "pos": 4, "gtid": f"{UUID}:1-5:7-9,\n{OTHER}:3"}
IS_IN = {
    "a_binlog_position_that_is_passed": ("binlog.000009:499", BINLOG, True),
    "the_position_itself": ("binlog.000009:500", BINLOG, True),
    "a_later_position_in_the_file": ("binlog.000009:501", BINLOG, False),
    "a_later_file_with_a_smaller_position": ("binlog.000010:4", BINLOG, False),
    "files_are_compared_by_number": ("binlog.000010:4", {**BINLOG, "file": "binlog.1000000"}, True),
    "a_binlog_position_of_another_source": ("binlog.000009:4", {"version": 9}, False),
    "a_gtid_of_mariadb": ("0-1-70", BINLOG, True),
    "a_gtid_that_another_server_wrote_later_in_the_domain": ("0-9-69", BINLOG, True),
    "a_later_gtid": ("0-1-71", BINLOG, False),
    "gtids_of_two_domains": ("0-1-7,2-5-9", BINLOG, True),
    "one_of_two_domains_is_behind": ("0-1-7,2-5-10", BINLOG, False),
    "a_domain_that_is_not_there": ("3-1-1", BINLOG, False),
    "a_gtid_of_mysql": (f"{UUID}:5", MYSQL, True),
    "a_gtid_in_a_gap": (f"{UUID}:6", MYSQL, False),
    "a_set_over_a_gap": (f"{UUID}:4-8", MYSQL, False),
    "a_set_of_two_sources": (f"{UUID}:1-5:8,{OTHER}:3", MYSQL, True),
    "in_any_case": (f"{UUID.upper()}:1", MYSQL, True),
    "a_source_that_is_not_there": (f"{UUID[:-1]}9:1", MYSQL, False),
    "an_offset_that_is_passed": ("0:7", {"offsets": {"0": 7, "1": 3}}, True),
    "an_offset_that_is_not": ("0:8", {"offsets": {"0": 7}}, False),
    "several_offsets_of_one_partition": ("0:8,0:7", {"offsets": {"0": 7}}, False),
    "offsets_of_two_partitions": ("0:7,1:4", {"offsets": {"0": 7, "1": 3}}, False),
    "a_partition_that_is_not_there": ("5:0", {"offsets": {"0": 7}}, False),
    "a_version": ("12", {"version": 12}, True),
    "a_later_version": ("13", {"version": 12}, False),
    "a_time": ("at:900", {}, True),
    "a_later_time": ("at:1001", {}, False),
}


@pytest.mark.parametrize("case", IS_IN)
def test_is_in(case):
    text, position, expected = IS_IN[case]

    assert token_of(text, 0).is_in(1_000, position) is expected


def test_now_is_the_time_of_the_question():
    token = token_of("now", 1_000)

    assert (token.kind, token.is_in(1_000, {}), token.is_in(999, {})) == (
        TokenKind.TIME,
        True,
        False,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "binlog:4",
        "binlog.000001",
        "0-1",
        "1-2-3-4",
        "0:",
        "-1",
        "0:1;1:2",
        "a" * 9_000,
    ],
)
def test_what_is_no_position_is_refused(text):
    with pytest.raises(RequestError, match="is no position"):
        token_of(text, 0)
