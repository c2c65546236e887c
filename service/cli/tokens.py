"""`sluice tokens create | ls | revoke`.

With a server or a token the commands use the control plane, as an admin; otherwise the job store of
this machine, where the first token is created.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.inspect import operator
from service.cli.options import Form, Server, load_settings, open_client
from service.cli.output import OutputFormat, instant, one_line, say, show, table, tell
from service.errors import TokenNotFoundError
from service.security.tokens import DEFAULT_DAYS, MOST_DAYS, Credentials, NewToken, TokenScope

if TYPE_CHECKING:
    from service.config import Settings
    from service.jobs.store.store import JobStore
    from service.schemas.tokens import CreatedToken, TokenView

app = typer.Typer(help="Create, list and revoke tokens of the API.", no_args_is_help=True)
DataDir = Annotated[
    Path | None, typer.Option(help="Use the job store in this directory, not a server.")
]


@app.command("create")
def create_token(
    name: Annotated[str, typer.Option(help="Name of the owner, for the audit log.")],
    scope: Annotated[
        TokenScope, typer.Option(help="Scope; each includes the previous ones.")
    ] = TokenScope.VIEWER,
    days: Annotated[
        int, typer.Option(help="Days until it expires.", min=1, max=MOST_DAYS)
    ] = DEFAULT_DAYS,
    data_dir: DataDir = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Create a token and print it; it is never shown again."""
    new_token = NewToken(name, scope, days, created_by=operator())
    if _is_here(server, data_dir):
        created = _create_here(new_token, data_dir)
    else:
        with open_client(server) as client:
            created = client.tokens.create(name, scope.value, days)
    tell(created, output, lambda shown: typer.echo(shown.token))
    say(f"token {created.id} is valid until {instant(created.expires_at_ms)}")


@app.command("ls")
def list_tokens(
    data_dir: DataDir = None, server: Server = None, output: Form = OutputFormat.TABLE
) -> None:
    """List tokens with scope, expiry and last use."""
    tokens = _listed(server, data_dir)
    tell(tokens, output, _show_tokens)


def _show_tokens(tokens: list["TokenView"]) -> None:
    rows = table("ID", "NAME", "SCOPE", "STATE", "EXPIRES", "LAST USED", "CREATED BY")
    for token in tokens:
        used = token.last_used_at_ms
        rows.add_row(
            token.id,
            one_line(token.name),
            token.scope,
            token.state,
            instant(token.expires_at_ms),
            "-" if used is None else instant(used),
            one_line(token.created_by),
        )
    show(rows)


@app.command("revoke")
def revoke_token(
    token: Annotated[str, typer.Argument(help="Id, or unique name.")],
    data_dir: DataDir = None,
    server: Server = None,
) -> None:
    """Revoke a token at once; on the job store directly within two seconds."""
    token_id = _find(token, _listed(server, data_dir))
    if _is_here(server, data_dir):
        settings = load_settings(data_dir=data_dir)
        store = _open_store(settings)
        try:
            store.tokens.revoke(token_id)
        finally:
            store.close()
        _audit(settings, "tokens revoke", token_id)
    else:
        with open_client(server) as client:
            client.tokens.revoke(token_id)
    say(f"token {token_id} revoked")


def _is_here(server: str | None, data_dir: Path | None) -> bool:
    if data_dir is not None:
        return True
    return server is None and Credentials.of_environment().token is None


def _open_store(settings: "Settings") -> "JobStore":
    from service.jobs.store.store import JobStore  # slow to load

    return JobStore.open(settings.store_url)


def _create_here(new_token: NewToken, data_dir: Path | None) -> "CreatedToken":
    from service.api.routes.admin import token_view  # slow to load
    from service.schemas.tokens import CreatedToken

    settings = load_settings(data_dir=data_dir)
    store = _open_store(settings)
    try:
        token, text = store.tokens.create(new_token)
    finally:
        store.close()
    _audit(settings, "tokens create", token.id)
    return CreatedToken(**token_view(token).model_dump(), token=text)


def _listed(server: str | None, data_dir: Path | None) -> list["TokenView"]:
    from service.api.routes.admin import token_view  # slow to load

    if not _is_here(server, data_dir):
        with open_client(server) as client:
            return list(client.tokens.list())
    store = _open_store(load_settings(data_dir=data_dir))
    try:
        return [token_view(token) for token in store.tokens.all()]
    finally:
        store.close()


def _find(reference: str, listed: list["TokenView"]) -> str:
    if any(token.id == reference for token in listed):
        return reference
    ids = [t.id for t in listed if t.name == reference and t.state == "active"]
    if len(ids) != 1:
        problem = "does not exist" if not ids else f"could be one of {len(ids)}"
        raise TokenNotFoundError(
            f'token "{reference}" {problem}',
            hint="Run sluice tokens ls to see the tokens and their ids.",
        )
    return ids[0]


def _audit(settings: "Settings", words: str, token_id: str) -> None:
    from service.security.audit import (  # slow to load
        AuditEntry,
        AuditLog,
    )

    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)  # no SQLite has made it
    what = f"/v1/tokens/{token_id}"
    AuditLog(settings).write(AuditEntry(operator(), None, "this machine", words, what, "done"))
