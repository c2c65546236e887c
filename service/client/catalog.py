"""The catalog of a control plane: tables and views that every later script may name."""

from urllib.parse import quote

from service.client.transport import Transport
from service.schemas.tables import (
    CatalogList,
    CatalogTable,
    CatalogTableDetail,
    TableCreation,
)


class Catalog:
    """Creates, shows and drops them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, sql: str) -> TableCreation:
        """Keep the tables and views of a script; all of them, or none.

        Raises:
            InvalidRequestError: a statement cannot be kept, or what it names cannot be used.
            ConflictError: there is a table or view of that name.
        """
        return self._transport.post(TableCreation, "/v1/tables", json={"sql": sql})

    def tables(self) -> list[CatalogTable]:
        """All tables and views, by name."""
        return self._transport.ask(CatalogList, "/v1/tables").items

    def table(self, name: str) -> CatalogTableDetail:
        """One table or view.

        Raises:
            NotFoundError: there is none of this name.
        """
        return self._transport.ask(CatalogTableDetail, f"/v1/tables/{quote(name, safe='')}")

    def drop(self, name: str) -> None:
        """Forget a table or view; the copy of a shared table is removed.

        Raises:
            NotFoundError: there is none of this name.
            ConflictError: jobs or views use it.
        """
        self._transport.send("DELETE", f"/v1/tables/{quote(name, safe='')}")
