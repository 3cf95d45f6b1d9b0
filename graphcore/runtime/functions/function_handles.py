"""The handles of instantiated functions, shared by all runtimes of a process."""

from __future__ import annotations

from collections.abc import Callable

from graphcore.errors import NotFoundError
from graphcore.runtime.functions.function_item import FunctionItem
from graphcore.support.critical_section import critical_section
from graphcore.support.forking import new_rlock


class FunctionHandles:
    """Instantiations by handle, and handles by device and canonical name."""

    def __init__(self) -> None:
        self.lock = new_rlock()
        self._by_key: dict[tuple[str, str], int] = {}
        self._items: dict[int, FunctionItem] = {}
        self._next = 0

    def get(self, key: tuple[str, str], make: Callable[[], FunctionItem]) -> int:
        """The handle under `key`; `make` is called if there is none."""
        with self.lock:
            handle = self._by_key.get(key)
            if handle is None:
                item = make()
                handle = self._next
                with critical_section:
                    self._next += 1
                    self._by_key[key] = handle
                    self._items[handle] = item
            return handle

    def item(self, handle: int) -> FunctionItem:
        """The instantiation behind a handle.

        Raises:
            NotFoundError: there is none, or it was released.
        """
        item = self._items.get(handle)
        if item is None:
            raise NotFoundError(f"Handle {handle} not found.")
        return item

    def items(self) -> list[FunctionItem]:
        """All instantiations, the oldest first."""
        return list(self._items.values())

    def release(self, handle: int) -> None:
        """Release a handle; an instantiation ends with its last handle.

        Raises:
            NotFoundError: there is none, or it was released.
        """
        with self.lock, critical_section:
            item = self.item(handle)
            item.users -= 1
            if item.users > 0:
                return
            del self._items[handle], self._by_key[item.key]
            item.close()
