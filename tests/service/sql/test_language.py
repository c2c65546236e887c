"""What the documents say of Flink's language is tried, and says what to do instead."""

import pytest

from docs.site.language import FORMS, Presence, answer, answers

NEEDS_STATE = {
    *("GROUP BY", "OVER", "ROW_NUMBER (deduplication, Top-N)", "MATCH_RECOGNIZE", "UNION"),
    *("JOIN of two streams (regular, interval)", "RIGHT JOIN, FULL JOIN", "SELECT DISTINCT"),
    *("INTERSECT, EXCEPT", "JOIN of two windows", "LATERAL (SELECT …)"),
}


@pytest.mark.parametrize("form", sorted(NEEDS_STATE))
def test_what_needs_state_of_every_key_is_refused_with_a_way_out(form):
    (example,) = [forms[form] for forms in FORMS.values() if form in forms]
    refused = answer(example)
    assert refused.state is Presence.NO
    assert refused.text.endswith(".")


def test_most_forms_are_here():
    states = [each.state for _, _, each in answers()]
    assert states.count(Presence.YES) >= 60
    assert all(each.text for _, _, each in answers() if each.state is not Presence.YES)
