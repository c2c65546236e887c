"""`/v1/secrets`: set, list and remove the secrets of the control plane; only an admin may."""

from typing import Annotated

from fastapi import APIRouter, Path

from service.api.http.access import ADMIN
from service.api.routes.jobs import Injected
from service.schemas.tokens import SecretList, SecretValue, SecretView, StoredSecret
from service.security.secret_store import KnownSecret, SecretStore

router = APIRouter(prefix="/v1/secrets", tags=["secrets"], dependencies=[ADMIN])
SecretName = Annotated[str, Path(max_length=128, description="As in `${secret:name}`.")]


@router.get("", summary="List secrets")
def list_secrets(services: Injected) -> SecretList:
    """Every secret that jobs of this control plane can refer to, without its value."""
    known = SecretStore(services.settings).known()
    directory = str(services.settings.kept_secrets_dir)
    return SecretList(items=[secret_view(secret) for secret in known], directory=directory)


@router.put("/{name}", summary="Set a secret")
def put_secret(name: SecretName, body: SecretValue, services: Injected) -> StoredSecret:
    """Keep a secret in the control plane's directory; runners read it when they start."""
    store = SecretStore(services.settings)
    store.put(name, body.value.get_secret_value())
    kept = next(s for s in store.known() if (s.name, s.source) == (name, "kept"))
    directory = str(services.settings.kept_secrets_dir)
    return StoredSecret(**secret_view(kept).model_dump(), directory=directory)


@router.delete("/{name}", summary="Remove a secret")
def remove_secret(name: SecretName, services: Injected) -> SecretList:
    """Forget a secret of the control plane's directory; the answer has those that are left."""
    SecretStore(services.settings).remove(name)
    return list_secrets(services)


def secret_view(secret: KnownSecret) -> SecretView:
    """A secret as API and commands show it."""
    return SecretView(
        name=secret.name,
        source=secret.source,
        jobs=list(secret.jobs),
        hidden_by=secret.hidden_by,
    )
