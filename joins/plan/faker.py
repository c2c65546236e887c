"""Templates of datagen values: the expressions of Datafaker that flink-faker scripts use.

An expression is text with parts such as `#{Name.fullName}` or `#{number.numberBetween '1','9'}`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

TEXTS = {
    "Address.city": "city",
    "Address.country": "country",
    "Address.countryCode": "country_code",
    "Address.fullAddress": "address",
    "Address.state": "state",
    "Address.streetAddress": "street_address",
    "Address.zipCode": "postcode",
    "Color.name": "color_name",
    "Company.name": "company",
    "Currency.code": "currency_code",
    "Internet.domainName": "domain_name",
    "Internet.emailAddress": "email",
    "Internet.ipV4Address": "ipv4",
    "Internet.ipV6Address": "ipv6",
    "Internet.macAddress": "mac_address",
    "Internet.publicIpV4Address": "ipv4_public",
    "Internet.url": "url",
    "Internet.userAgent": "user_agent",
    "Internet.username": "user_name",
    "Internet.uuid": "uuid4",
    "Job.title": "job",
    "Lorem.paragraph": "paragraph",
    "Lorem.sentence": "sentence",
    "Lorem.word": "word",
    "Name.firstName": "first_name",
    "Name.fullName": "name",
    "Name.lastName": "last_name",
    "Name.name": "name",
    "PhoneNumber.cellPhone": "phone_number",
    "PhoneNumber.phoneNumber": "phone_number",
}
"""Providers of texts: name in Datafaker → name in Python's Faker."""

OPTION, BETWEEN, PAST, FUTURE = "Options.option", "Number.numberBetween", "Date.past", "Date.future"
DECIMALS = "Number.randomDouble"
_ARGUMENTS = {OPTION: (1, 1_000), BETWEEN: (2, 2), DECIMALS: (3, 3), PAST: (2, 3), FUTURE: (2, 3)}
_MOST_DECIMALS = 9
_UNITS_MS = {
    "MILLISECONDS": 1,
    "SECONDS": 1_000,
    "MINUTES": 60_000,
    "HOURS": 3_600_000,
    "DAYS": 86_400_000,
}
_CALL = re.compile(r"#\{\s*([A-Za-z_]+(?:\.[A-Za-z_0-9]+)*)((?:\s*,?\s*'[^']*')*)\s*\}")
_ANY = "Lorem.word"
_QUOTED = re.compile(r"'([^']*)'")
_LARGEST_MS = 100 * 365 * 86_400_000


class ExpressionFault(ValueError):  # noqa: N818 (a fault of the text, of which its reader makes an error)
    """A fault of an expression, in words that follow its name."""


@dataclass(frozen=True, slots=True)
class FakerCall:
    """A call in an expression; `name` is as in `TEXTS`, or one of the five constants."""

    name: str
    arguments: tuple[str, ...] = ()

    @property
    def decimals(self) -> int:
        return int(self.arguments[0]) if self.name == DECIMALS else 0

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and greatest number, or milliseconds from now, both inclusive.

        Of a number with `decimals` they are those of its last digit.
        """
        if self.name == BETWEEN:
            low, high = (int(text) for text in self.arguments)
            return low, max(low, high - 1)
        if self.name == DECIMALS:
            low, high = (int(text) * 10**self.decimals for text in self.arguments[1:])
            return low, high
        unit = _UNITS_MS[_unit(self.arguments[-1])]
        times = [int(text) * unit for text in self.arguments[:-1]]
        near, far = min([0, *times[1:]] if len(times) == 1 else times), max(times)
        return (near, far) if self.name == FUTURE else (-far, -near)


def parts_of(expression: str) -> list[str | FakerCall]:
    """Text and calls, in order; no text is empty. ExpressionFault if a part is unknown."""
    parts, at = list[str | FakerCall](), 0
    for match in _CALL.finditer(expression):
        parts += [expression[at : match.start()], _call(match)]
        at = match.end()
    parts.append(expression[at:])
    if any(isinstance(part, str) and "#{" in part for part in parts):
        raise ExpressionFault("is no text with #{Name.ofAValue 'argument',…} in it")
    return [part for part in parts if part]


def unknown_calls(expression: str) -> Iterator[str]:
    """The names in an expression that are not known here, and for which words are made."""
    names = (match[1] for match in _CALL.finditer(expression))
    return (name for name in names if _plain(name) not in _NAMES)


def calls_of(expression: str) -> Iterator[FakerCall]:
    return (part for part in parts_of(expression) if isinstance(part, FakerCall))


def _call(match: re.Match[str]) -> FakerCall:
    written = match[1]
    name = _NAMES.get(_plain(written))
    if name is None:
        return FakerCall(_ANY)
    call = FakerCall(name, tuple(_QUOTED.findall(match[2])))
    least, most = _ARGUMENTS.get(name, (0, 0))
    if not least <= len(call.arguments) <= most:
        raise ExpressionFault(f'has "{written}" with {len(call.arguments)} arguments')
    if name == BETWEEN:
        _check_numbers(call.arguments, 2**62)
    elif name == DECIMALS:
        _check_numbers(call.arguments[:1], _MOST_DECIMALS)
        _check_numbers(call.arguments[1:], 2**53 // 10**_MOST_DECIMALS)
        if call.decimals < 0:
            raise ExpressionFault(f'has "{call.arguments[0]}" where a number of digits belongs')
    elif name in (PAST, FUTURE):
        _check_times(call)
    return call


def _check_numbers(texts: tuple[str, ...], limit: int) -> None:
    for text in texts:
        try:
            number = Decimal(text)
        except InvalidOperation as exc:
            raise ExpressionFault(f'has "{text}" where a number belongs') from exc
        if not re.fullmatch(r"-?\d+", text) or abs(number) > limit:
            raise ExpressionFault(f'has "{text}" where a whole number belongs')
    if int(texts[0]) > int(texts[-1]):
        raise ExpressionFault(f"has bounds {texts[0]} and {texts[-1]} in the wrong order")


def _check_times(call: FakerCall) -> None:
    if _unit(call.arguments[-1]) not in _UNITS_MS:
        raise ExpressionFault(f'has the unit "{call.arguments[-1]}"')
    for text in call.arguments[:-1]:
        _check_numbers((text, text), _LARGEST_MS)
    if max(abs(bound) for bound in call.bounds) > _LARGEST_MS or "-" in "".join(call.arguments):
        raise ExpressionFault("has a time of more than a hundred years, or a negative one")


def _unit(text: str) -> str:
    upper = text.upper()
    return upper if upper.endswith("S") else f"{upper}S"


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_NAMES = {_plain(name): name for name in (*TEXTS, *_ARGUMENTS)}
