"""The table of acceptance ids is complete and up to date."""

from tests.watermark.acceptance import TABLE, coverage, covers, table


@covers("B56")
def test_every_id_has_a_test():
    assert [each for each, tests in coverage().items() if not tests] == []


def test_the_kept_table_is_the_generated_one():
    assert TABLE.read_text() == table()
