"""Paths into JSON, and what lies there."""

import pytest

from joins.kernels.expressions.json_paths import JsonError, PathError, parsed, path_of, written

DOCUMENT = parsed('{"a": {"b c": [1, 2.0, {"d": null}]}, "l": [[1, 2], [3]], "n": 1e2}')
READ = {
    "$": DOCUMENT,
    "$.a['b c'][0]": 1,
    '$["a"]["b c"][-1].d': None,
    "$.l[*][0]": [1, 3],
    "$.l[0:1]": [[1, 2]],
    "$.l[0,1][0]": [1, 3],
    "$..d": [None],
    "$.l.length()": 2,
    "$.n.length()": None,
    "a['b c'][1]": 2.0,
    "$['n','x','l']": {"n": 100.0, "l": [[1, 2], [3]]},
    "$['n','l'][1]": [[3]],
    "$.l[0:-1]": [],
    "$.l[:-1]": [[1, 2]],
    "$.l[-1:1]": [[3], [1, 2]],
    "$['\\u006c'][1][0]": 3,
    "$.*[0].x": [],
    "$..[0]": [1, [1, 2], 1, 3],
    "lax $.n[*]": [],
    "$.n.*": [],
    "lax $.x.y": None,
    "lax $.l[9]": None,
}
NONE = (
    *("", "$.", "$[", "$[?(@.a)]", "$.a.min()", "$[a]", "$x", "$.a[1", "$.."),
    *("$.*.length()", "$.length().a", "$..[0].a", "$..*.a"),
)


@pytest.mark.parametrize(("path", "expected"), READ.items(), ids=READ)
def test_a_path_leads_to_values(path, expected):
    assert path_of(path).read(DOCUMENT) == expected


NOWHERE = ("$.x", "strict $.l[9]", "$.n.x", "$.n[0:]", "$.x[*]", "$.a[0,1]", "$.n['a','b']")


@pytest.mark.parametrize("path", NOWHERE)
def test_a_strict_path_that_leads_nowhere_is_told(path):
    with pytest.raises(JsonError):
        path_of(path).read(DOCUMENT)


@pytest.mark.parametrize("path", ["$", "lax $", "lax $.a", "$[*]"])
def test_no_path_leads_into_null(path):
    with pytest.raises(JsonError):
        path_of(path).read(None)


@pytest.mark.parametrize("path", NONE)
def test_what_is_no_path_is_told(path):
    with pytest.raises(PathError):
        path_of(path)


def test_members_are_written_in_the_order_of_their_names_and_numbers_as_in_java():
    value = parsed(
        '{"b": 1.50, "a": [1e20, 12345678901234567890, "\\u0007\\u00e9/"], "\\ud83d": 0}'
    )
    assert written({k: v for k, v in value.items() if len(k) == 1 and k < "z"}) == (
        '{"a":[1.0E20,12345678901234567890,"\\u0007é/"],"b":1.5}'
    )


@pytest.mark.parametrize("text", ["NaN", "{", "[1,]", "'a'", "", "[" * 100_000])
def test_what_is_no_json_is_told(text):
    with pytest.raises(JsonError):
        parsed(text)
