"""Searches of graphs that are given by a function from a node to its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

_T = TypeVar("_T", bound=Hashable)


def reachable(starts: Iterable[_T], following: Callable[[_T], Iterable[_T]]) -> set[_T]:
    """`starts` and all that can be reached from these."""
    reached = set(starts)
    pending = list(reached)
    while pending:
        for other in following(pending.pop()):
            if other not in reached:
                reached.add(other)
                pending.append(other)
    return reached


def post_order(starts: Iterable[_T], following: Callable[[_T], Iterable[_T]]) -> list[_T]:
    """`starts` and all that can be reached from these, each after its neighbours.

    Of several starts or neighbours, the last is visited first.
    """
    order: list[_T] = []
    seen: set[_T] = set()
    pending = [(start, False) for start in starts]
    while pending:
        item, is_left = pending.pop()
        if is_left:
            order.append(item)
        elif item not in seen:
            seen.add(item)
            pending.append((item, True))
            pending += [(other, False) for other in following(item)]
    return order


def dependency_order(starts: list[_T], producers: Callable[[_T], Iterable[_T]], cycle: Callable[[_T], Exception]) -> list[_T]:
    """`starts` and all that they depend on, each after its producers.

    Of several starts or producers, the first is visited first.

    Args:
        starts: visited one by one. `producers` may append to it, such as the source of a back edge, to be visited at last.
        producers: the items that an item depends on.
        cycle: makes the error for an item that depends on itself.

    Raises:
        Exception: the error that `cycle` makes.
    """
    order: list[_T] = []
    is_left: dict[_T, bool] = {}
    for start in starts:
        if start in is_left:
            continue
        is_left[start] = False
        path = [(start, iter(producers(start)))]
        while path:
            item, others = path[-1]
            for other in others:
                if other not in is_left:
                    is_left[other] = False
                    path.append((other, iter(producers(other))))
                    break
                if not is_left[other]:
                    raise cycle(other)
            else:
                path.pop()
                is_left[item] = True
                order.append(item)
    return order


def topological_sort(items: Iterable[_T], producers: Callable[[_T], Iterable[_T]], key: Callable[[_T], Any]) -> tuple[list[_T], list[_T]]:
    """Sort items so that each comes after its producers.

    Where several could come next, the one with the smallest `key` does. Producers that are not among the items are ignored.

    Returns:
        The items in order, and those in or behind a cycle.
    """
    all_items = list(items)
    among = set(all_items)
    waiting: dict[_T, int] = {}
    consumers: dict[_T, list[_T]] = {}
    for item in all_items:
        awaited = among.intersection(producers(item))
        waiting[item] = len(awaited)
        for producer in awaited:
            consumers.setdefault(producer, []).append(item)
    ready = [(key(item), number) for number, item in enumerate(all_items) if not waiting[item]]
    numbers = {item: number for number, item in enumerate(all_items)}
    heapify(ready)
    order: list[_T] = []
    while ready:
        item = all_items[heappop(ready)[1]]
        order.append(item)
        for consumer in consumers.get(item, ()):
            waiting[consumer] -= 1
            if not waiting[consumer]:
                heappush(ready, (key(consumer), numbers[consumer]))
    return order, [item for item, count in waiting.items() if count]
