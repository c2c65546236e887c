"""Wire models of secrets. Only the request that sets one has its value."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from service.schemas.document import Body, Document, OrNewer

SecretSource = Literal["environment", "directory", "kept"]


class SecretValue(Body):
    """The value of a secret; no answer has it."""

    value: Annotated[SecretStr, Field(description="One line of text, or PEM texts.")]


class SecretView(Document):
    """A secret without its value."""

    name: str
    source: Annotated[
        SecretSource,
        OrNewer,
        Field(
            description="`environment` and `directory` (`SLUICE_SECRETS_DIR`) are the operator's; "
            "`kept` is the directory of this control plane."
        ),
    ]
    jobs: Annotated[list[str], Field(description="Ids of the jobs whose scripts refer to it.")]
    hidden_by: Annotated[
        SecretSource | None,
        OrNewer,
        Field(description="Where a secret of the same name is found first; null without one."),
    ]


class SecretList(Document):
    """Secrets in the order in which their places are searched."""

    items: list[SecretView]
    directory: Annotated[str, Field(description="Where the control plane keeps secrets.")]


class StoredSecret(SecretView):
    """A secret that was set."""

    directory: Annotated[str, Field(description="Where the control plane keeps it.")]
