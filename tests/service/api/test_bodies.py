"""Bodies of requests: a value of another JSON type is refused, whatever it could be taken for."""

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from service.api.app import create_app
from service.schemas.document import Body

assert create_app is not None, "all routes are loaded, and their bodies with them"
VALUES: dict[type, tuple[Any, ...]] = {
    int: ("5", "x", 5.0, 5.5, True, [5]),
    float: ("0.5", True, [0.5]),
    bool: ("true", "yes", 1, 0, 1.0),
    str: (5, 0.5, True, ["x"]),
}


def bodies(model: type[Body] = Body) -> list[type[Body]]:
    return [each for sub in model.__subclasses__() for each in (sub, *bodies(sub))]


def kinds_of(field: FieldInfo) -> set[type]:
    members = get_args(field.annotation) or (field.annotation,)
    return set(members) & set(VALUES)


CASES = [
    (body, name, value)
    for body in dict.fromkeys(bodies())
    for name, field in body.model_fields.items()
    for kind in kinds_of(field)
    for value in VALUES[kind]
]


def test_bodies_have_numbers_flags_and_texts() -> None:
    fields = [field for body in bodies() for field in body.model_fields.values()]
    kinds = {kind for field in fields for kind in kinds_of(field)}
    assert kinds == set(VALUES)


@pytest.mark.parametrize(("body", "name", "value"), CASES)
def test_a_value_of_another_type_is_refused(body: type[Body], name: str, value: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(body).validate_python({name: value})
    assert any(error["loc"][0] == name for error in caught.value.errors())
