"""What an address gives page by page."""

from collections.abc import Iterator
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from service.client.transport import Transport

Page = TypeVar("Page", bound=BaseModel)
Item = TypeVar("Item")


class Pages(Generic[Page, Item]):
    """The items of an address; iterating asks for them page by page.

    Args:
        transport: to the control plane.
        model: of a page, which has `items` and `next_cursor`.
        path: the address.
        limit: items of a page.
        query: what the address asks besides; what is None is left out.
    """

    _cursor_is_all: ClassVar[bool] = False  # a cursor has all that the first page was asked with

    def __init__(
        self, transport: Transport, model: type[Page], path: str, limit: int, **query: object
    ) -> None:
        self._transport = transport
        self._model = model
        self._path = path
        self._limit = limit
        self._query = query

    def page(self, limit: int | None = None, cursor: str | int | None = None) -> Page:
        """One page, the first or that of `cursor`, which the page before it has named."""
        query = {} if self._cursor_is_all and cursor is not None else self._query
        size = limit or self._limit
        return self._transport.ask(self._model, self._path, **query, limit=size, cursor=cursor)

    def _pages(self) -> Iterator[Any]:
        page: Any = self.page()
        yield page
        while page.next_cursor is not None:
            page = self.page(cursor=page.next_cursor)
            yield page

    def __iter__(self) -> Iterator[Item]:
        for page in self._pages():
            yield from page.items
