"""The text of what a loop repeats: one Python function an item, which makes the calls of its tape and hands on what they give.

It does what `FusedRun` does with the tape and `Propagation.activate` with what that gives. All that the table tells, it tells once, in
the text: which registers may be dead, who takes them, and how much those still wait for. What is rare it leaves to `Propagation`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

import numpy as np

from graphcore.kernel_context import DEAD
from graphcore.runtime.dataflow.table import BRANCH, EXITING, NEXT, SENDING, Call, Item, QuickCall, Tape
from graphcore.support.deadline import check_time

_SYMBOLS: Final[dict[Any, str]] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}
_DEEPEST: Final = 8
"""So many items hand on a value within each other in one text at most."""
_LONGEST: Final = 200
"""From so many lines on, what is handed on is left to `Propagation`."""
_REMEMBERED: Final = 256
_PLACES: Final = 1 << 40
"""From here on a number in a text stands for another: none of a graph's is as large."""
MOST_CALLS: Final = 500
"""A tape of more calls is not written out: compiling it would take longer than it may save."""
ALIVE: Final = 0
MAYBE_DEAD: Final = 1
SURELY_DEAD: Final = 2


class Value(NamedTuple):
    """A value in the text: how it is written there, and whether it is dead."""

    text: str
    death: int = ALIVE


_DEAD_VALUE: Final = Value("DEAD", SURELY_DEAD)


class Taker(NamedTuple):
    """Who takes values of an item.

    Attributes:
        values: what it takes, with the slots that it goes into.
        arriving: how much of what it waits for comes from the item, values and control edges; `is_all` if that is all.
        death: what this tells of whether it is dead.
    """

    item: Item
    values: list[tuple[int, Value]]
    arriving: int
    is_all: bool
    death: int


def _takers(item: Item, given: Sequence[Value], is_alive: bool) -> list[Taker]:
    """All plain consumers of `item`, once each."""
    values: dict[Item, list[tuple[int, Value]]] = {}
    for port, consumer, slot, _ in item.data_edges:
        values.setdefault(consumer, []).append((slot, given[port]))
    controls = Counter(item.control_edges)
    takers = []
    for consumer in dict.fromkeys((*values, *controls)):
        taken = values.get(consumer, [])
        count = len(taken) + controls[consumer]
        death = max([value.death for _, value in taken], default=ALIVE)
        if controls[consumer] and not is_alive:
            death = SURELY_DEAD
        takers.append(Taker(consumer, taken, count, count == consumer.frame.pending[consumer.index], death))
    return takers


def _only_hands_on(taker: Taker) -> bool:
    """Whether one who gets all that it waits for makes no call: it has none to make, or is dead and nobody elsewhere must be told."""
    tape = taker.item.tape
    if tape is None or tape.fetches or tape.sends:
        return False
    return taker.death == SURELY_DEAD or (taker.death == ALIVE and not tape.calls)


class ItemText:
    """The function of one item that has a tape: `advance(run, at)`.

    Attributes:
        calls: the call that each line makes, by the line's number.
    """

    def __init__(self, item: Item, tape: Tape, helpers: Mapping[str, Any]) -> None:
        self.item = item
        self.tape = tape
        self.calls: dict[int, Call] = {}
        self._scope: dict[str, Any] = {"DEAD": DEAD, "bool_": np.bool_, **helpers}
        self._names: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._lines: list[str] = []
        self._maybe_dead: set[int] = set()
        self._count = 0

    def inputs(self, call: Call, local: Mapping[str, Any]) -> list[Any]:
        """What `call` got, as the variables of the function tell."""
        return [local.get(f"r{i}", self.tape.registers[i]) for i in call.inputs]

    def compiled(self) -> FunctionType:
        """The function."""
        check_time(self.item.node.name, self.item.node.op)
        self._write()
        code = _code("\n".join(self._lines))
        numbers = {place: number for number, place in self._numbers.items()}
        return FunctionType(code.replace(co_consts=tuple([numbers.get(const, const) for const in code.co_consts])), self._scope)

    def _write(self) -> None:
        item = self.item
        self._line(0, "def advance(run, at):")
        self._line(1, f"if at.dead is not None and {self._number(item.index)} in at.dead:")
        self._line(2, f"run.die_out({self._name('i', item)}, at)")
        self._line(2, f"return run.move.activate({self._name('i', item)}, at, None)")
        self._line(1, "inputs, pending, move, is_watched = at.inputs, at.pending, run.move, run.cancellation is not None")
        self._line(1, "ready = move.ready")
        for slot in range(item.count):
            self._line(1, f"r{slot} = inputs[{self._number(item.base + slot)}]")
            self._line(1, f"inputs[{self._number(item.base + slot)}] = None")
        for call in self.tape.calls:
            self._call(call)
        registers = [self._register(i) for i in range(len(self.tape.registers))]
        self._hand(item, registers, "at", 1, 0)

    def _line(self, depth: int, text: str, call: Call | None = None) -> None:
        self._lines.append("    " * depth + text)
        if call is not None:
            self.calls[len(self._lines)] = call

    def _name(self, letter: str, thing: Any) -> str:
        """What `thing` is called in the text."""
        found = self._names.get(id(thing))
        if found is None:
            found = self._names[id(thing)] = f"{letter}{len(self._names)}"
            self._scope[found] = thing
        return found

    def _number(self, number: int) -> int:
        """What stands in the text for `number`, which is another one in each loop of the same form."""
        return self._numbers.setdefault(number, _PLACES + len(self._numbers))

    def _fresh(self, letter: str) -> str:
        self._count += 1
        return f"{letter}_{self._count}"

    def _register(self, number: int) -> Value:
        constant = self.tape.registers[number]
        if constant is not None:
            return Value(self._name("c", constant))
        return Value(f"r{number}", MAYBE_DEAD if number in self._maybe_dead else ALIVE)

    def _call(self, quick: QuickCall) -> None:
        arity, kernel, _, _, _, dtype, _, call = quick
        item, inputs = call.item, [self._register(i) for i in call.inputs]
        name = self._name("i", item)
        texts = [f"{value.text}.read()" if slot in item.variables else value.text for slot, value in enumerate(inputs)]
        dead = " or ".join([f"{value.text} is DEAD" for value in inputs if value.death])
        self._line(1, f"if is_watched: run.go_on_to({name})", call)
        outputs = [f"r{i}" for i in call.outputs]
        if arity == BRANCH:
            data, pred = texts
            sides = f"((DEAD, {data}) if {pred} else ({data}, DEAD))"
            self._line(1, f"{', '.join(outputs)} = {sides} if type({pred}) is bool_ else branched({name}, {data}, {pred})", call)
        elif item.kind == SENDING:
            self._line(1, f"run.send({name}, at, {texts[0]})", call)
        elif arity:
            made = f"{texts[0]} {_SYMBOLS[kernel]} {texts[1]}" if kernel in _SYMBOLS else f"{self._name('k', kernel)}({', '.join(texts)})"
            self._line(1, f"{outputs[0]} = DEAD if {dead} else {made}" if dead else f"{outputs[0]} = {made}", call)
            if dtype is not None:
                unless = f" and {outputs[0]} is not DEAD" if dead else ""
                self._line(1, f"if getattr({outputs[0]}, 'dtype', None) is not {self._name('d', dtype)}{unless}:", call)
                self._line(2, f"{outputs[0]}, = checked({name}, {outputs[0]})", call)
        else:
            made = f"checked({name}, {self._name('k', item.kernel)}({', '.join(texts)}))"
            made = f"({'DEAD, ' * len(outputs)}) if {dead} else {made}" if dead else made
            self._line(1, f"{', '.join(outputs)}, = {made}" if outputs else made, call)
        if arity == BRANCH or dead:
            self._maybe_dead.update(call.outputs)
        else:
            self._maybe_dead.difference_update(call.outputs)
        if call.cleared:
            self._line(1, f"{' = '.join([f'r{i}' for i in call.cleared])} = None", call)

    def _hand(self, item: Item, given: Sequence[Value], at: str, depth: int, level: int, *, is_alive: bool = True) -> None:
        """Hand what `item` gave to its consumers in iteration `at`."""
        if self._is_too_long(level):
            outputs = f"({''.join([f'{value.text}, ' for value in given[: len(item.all_dead)]])})"
            self._line(depth, f"move.activate({self._name('i', item)}, {at}, {outputs if is_alive else None})")
            return
        begun = 0
        later: list[Callable[[], None]] = []
        for taker in _takers(item, given, is_alive):
            consumer = taker.item
            if taker.is_all and not self._is_too_long(level + 1) and _only_hands_on(taker):
                values = self._passed(taker)
                later.append(partial(self._hand, consumer, values, at, depth, level + 1, is_alive=taker.death == ALIVE))
                continue
            if taker.death == SURELY_DEAD:
                self._line(depth, f"{at}.kill({self._number(consumer.index)})")
            for slot, value in taker.values:
                self._store(value, consumer, slot, at, depth)
            if consumer.branches:
                later.append(partial(self._branch, taker, at, depth, level))
            elif taker.is_all:
                self._line(depth, f"ready.append(({self._name('i', consumer)}, {at}))")
                begun += 1
            else:
                self._count_down(taker, at, depth)
                self._line(depth + 1, f"ready.append(({self._name('i', consumer)}, {at}))")
                self._line(depth + 1, f"{at}.busy += 1")
        if begun:
            self._line(depth, f"{at}.busy += {begun}")
        for write in later:
            write()
        for port, mover in item.movers:
            self._move(mover, given[port], at, depth, level)
        for port, merge, number in item.merge_edges:
            self._merge(item, merge, number, given[port], at, depth, level)
        for merge in item.merge_controls:
            self._line(depth, f"move.release_merge({self._name('i', merge)}, {at})")

    def _is_too_long(self, level: int) -> bool:
        return level > _DEEPEST or (level > 0 and len(self._lines) > _LONGEST)

    def _passed(self, taker: Taker) -> list[Value]:
        """What an item gives that makes no call."""
        consumer = taker.item
        assert consumer.tape is not None
        registers = consumer.tape.registers
        if taker.death:
            return [_DEAD_VALUE] * len(registers)
        inputs = {slot - consumer.base: value for slot, value in taker.values}
        return [inputs[i] if constant is None else Value(self._name("c", constant)) for i, constant in enumerate(registers)]

    def _store(self, value: Value, consumer: Item, slot: int, at: str, depth: int) -> None:
        if value.death == MAYBE_DEAD:
            self._line(depth, f"if {value.text} is DEAD: {at}.kill({self._number(consumer.index)})")
            self._line(depth, f"else: {_of(at, 'inputs')}[{self._number(slot)}] = {value.text}")
        elif value.death == ALIVE:
            self._line(depth, f"{_of(at, 'inputs')}[{self._number(slot)}] = {value.text}")

    def _count_down(self, taker: Taker, at: str, depth: int) -> None:
        """Begin a block for when who takes something waits for nothing more."""
        left, place = self._fresh("left"), f"{_of(at, 'pending')}[{self._number(taker.item.index)}]"
        self._line(depth, f"{left} = {place} = {place} - {taker.arriving}")
        self._line(depth, f"if not {left}:")

    def _branch(self, taker: Taker, at: str, depth: int, level: int) -> None:
        """Hand on what a Switch takes, if its inputs are there."""
        switch = taker.item
        first, second = (f"{_of(at, 'inputs')}[{self._number(switch.base + slot)}]" for slot in (0, 1))
        self._count_down(taker, at, depth)
        if taker.death == SURELY_DEAD:
            self._line(depth + 1, f"move.branch({self._name('i', switch)}, {at})")
            return
        data, pred = self._fresh("data"), self._fresh("pred")
        self._line(depth + 1, f"{data}, {pred} = {first}, {second}")
        self._line(depth + 1, f"if ({at}.dead is not None and {self._number(switch.index)} in {at}.dead) or type({pred}) is not bool_:")
        self._line(depth + 2, f"move.branch({self._name('i', switch)}, {at})")
        self._line(depth + 1, "else:")
        self._line(depth + 2, f"{first} = {second} = None")
        for condition, given in (f"if {pred}:", (_DEAD_VALUE, Value(data))), ("else:", (Value(data), _DEAD_VALUE)):
            self._line(depth + 2, condition)
            self._line(depth + 3, "pass")
            self._hand(switch, given, at, depth + 3, level + 1)

    def _move(self, mover: Item, value: Value, at: str, depth: int, level: int) -> None:
        """Hand a value on into another frame or iteration."""
        name, is_next = self._name("i", mover), mover.kind == NEXT
        if value.death and not is_next:
            dead = f"move.enter({name}, {at}, None)"
            if mover.kind == EXITING:
                dead = f"if {at}.following is None: {at}.frame.dead_exits.append({name})"
            if value.death == SURELY_DEAD:
                self._line(depth, dead)
                return
            self._line(depth, f"if {value.text} is DEAD:")
            self._line(depth + 1, dead)
            self._line(depth, "else:")
            depth += 1
        elif value.death:
            if value.death == SURELY_DEAD:
                return
            self._line(depth, f"if {value.text} is not DEAD:")
            depth += 1
        if is_next:
            self._next(mover, value.text, at, depth, level)
        else:
            self._line(depth, f"move.{'leave' if mover.kind == EXITING else 'enter'}({name}, {at}, ({value.text},))")

    def _next(self, mover: Item, value: str, at: str, depth: int, level: int) -> None:
        name = self._name("i", mover)
        if mover.turns is None:
            self._line(depth, f"move.next({name}, {at}, ({value},))")
            return
        merge, place = mover.turns
        following = self._fresh("at")
        self._line(depth, f"{following} = {at}.following or move.begin({name}, {at}, ({value},))")
        self._line(depth, f"if {following} is not None:")
        self._line(depth + 1, f"if {following}.pending[{self._number(merge.index)}] == 1:")
        self._line(depth + 2, f"{following}.pending[{self._number(merge.index)}] = 0")
        self._hand(merge, (Value(value), Value(self._name("n", place))), following, depth + 2, level + 1)
        self._line(depth + 1, "else:")
        self._line(depth + 2, f"move.activate({name}, {following}, ({value},))")

    def _merge(self, item: Item, merge: Item, number: int, value: Value, at: str, depth: int, level: int) -> None:
        """Hand a value to a Merge, as its input `number`; the first that is alive goes on at once."""
        names = f"{self._name('i', item)}, {self._name('i', merge)}, {number}, {at}, {value.text}"
        if value.death == SURELY_DEAD or merge.node.inputs[number].dtype.is_ref:
            self._line(depth, f"move.feed_merge({names})")
            return
        unless = f" and {value.text} is not DEAD" if value.death else ""
        self._line(depth, f"if {_of(at, 'pending')}[{self._number(merge.index)}] == 1{unless}:")
        self._line(depth + 1, f"{_of(at, 'pending')}[{self._number(merge.index)}] = 0")
        self._hand(merge, (Value(value.text), Value(self._name("n", np.int32(number)))), at, depth + 1, level + 1)
        self._line(depth, "else:")
        self._line(depth + 1, f"move.feed_merge({names})")


@lru_cache(_REMEMBERED)
def _code(text: str) -> CodeType:
    """The code of the function in `text`. Loops of one form have one text: what differs are the values of its names, and its numbers."""
    module = compile(text, "<graphcore loop>", "exec")
    return next(const for const in module.co_consts if isinstance(const, CodeType))


def _of(at: str, name: str) -> str:
    return name if at == "at" else f"{at}.{name}"


def can_be_written(item: Item) -> bool:
    """Whether it pays to write out what `item` does: it is in a loop, and not too long."""
    tape = item.tape
    return tape is not None and bool(item.frame.name) and not tape.fetches and len(tape.calls) <= MOST_CALLS


def write_loops(items: Iterable[Item], helpers: Mapping[str, Any]) -> dict[int, ItemText]:
    """Give what repeats its function; the texts by the identity of its globals, as texts may share their code.

    Args:
        items: all of a table.
        helpers: what the text calls: `checked(item, given)` and `branched(item, data, pred)`.

    Raises:
        DeadlineExceededError: the time for planning is over.
    """
    texts: dict[int, ItemText] = {}
    for item in items:
        if item.tape is not None and can_be_written(item):
            text = ItemText(item, item.tape, helpers)
            item.advance = text.compiled()
            texts[id(item.advance.__globals__)] = text
    return texts
