"""Credentials that are written into a script: each gets a reference that takes its place."""

from dataclasses import dataclass, replace

from service.sql.catalog.option_values import SECRET, OptionValues, generic_key
from service.sql.grammar.syntax import OptionNode
from service.sql.text.masking import masked_comments
from service.sql.text.script import Script

INLINE_PREFIX = "inline-"
"""What the names of credentials begin with that a script has itself."""


@dataclass(frozen=True, slots=True)
class InlineSecret:
    """A credential in the script.

    Attributes:
        name: of the reference `${secret:name}`.
    """

    name: str
    value: str
    node: OptionNode

    @property
    def reference(self) -> str:
        return f"${{secret:{self.name}}}"


class InlineSecrets:
    """All credentials of a script, also of tables that are dropped or not used.

    One literal is one secret, however many tables have it by LIKE; so are equal ones of one option.
    """

    def __init__(self, *, keep_values: bool) -> None:
        self._keep_values = keep_values
        self._by_position: dict[int, InlineSecret] = {}

    @property
    def first(self) -> InlineSecret | None:
        return next(iter(self._by_position.values()), None)

    def take(self, table: str, values: OptionValues) -> tuple[InlineSecret, ...]:
        """The credentials in a table's options; references replace them unless values are kept."""
        secrets: list[InlineSecret] = []
        for key, node in values.nodes.items():
            option = values.options[generic_key(key)]
            if not option.credential or SECRET.fullmatch(node.value):
                continue
            secret = self._secret(table, node)
            secrets.append(secret)
            if not self._keep_values:
                values.nodes[key] = replace(node, value=secret.reference)
        return tuple(secrets)

    def _secret(self, table: str, node: OptionNode) -> InlineSecret:
        if node.value_at not in self._by_position:
            known = self._by_position.values()
            alike = (s.name for s in known if (s.node.key, s.value) == (node.key, node.value))
            name = next(alike, None) or self._new_name(table, node)
            self._by_position[node.value_at] = InlineSecret(name, node.value, node)
        return self._by_position[node.value_at]

    def _new_name(self, table: str, node: OptionNode) -> str:
        plain = f"{INLINE_PREFIX}{table}-{node.key.rpartition('.')[2]}"
        taken = {secret.name for secret in self._by_position.values()}
        name, number = plain, 2
        while name in taken:
            name, number = f"{plain}-{number}", number + 1
        return name

    def redacted(self, script: Script) -> str:
        """The script with references in place of the credentials, and none in its comments."""
        values = [secret.value for secret in self._by_position.values()]
        text = masked_comments(script.text, values)
        for at in sorted(self._by_position, reverse=True):
            secret = self._by_position[at]
            text = f"{text[:at]}'{secret.reference}'{text[secret.node.end :]}"
        return text
