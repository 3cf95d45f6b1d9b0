"""`tf.flags`: the options of a program, read from its command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from graphcore.errors import InvalidArgumentError

__all__ = [
    "FLAGS",
    "DEFINE_bool",
    "DEFINE_boolean",
    "DEFINE_enum",
    "DEFINE_float",
    "DEFINE_integer",
    "DEFINE_list",
    "DEFINE_multi_float",
    "DEFINE_multi_integer",
    "DEFINE_multi_string",
    "DEFINE_string",
    "Error",
    "FlagValues",
    "mark_flag_as_required",
    "mark_flags_as_required",
]

Error = InvalidArgumentError
Parser = Callable[[Any], Any]


def command_line() -> list[str]:
    """The command line of the program, without arguments in a notebook."""
    # The arguments of a notebook's kernel are not meant for the program.
    return sys.argv[:1] if Path(sys.argv[0]).name == "ipykernel_launcher.py" else list(sys.argv)


class _Flag:
    """One option: its parser, default and help."""

    def __init__(self, name: str, default: Any, text: str, parse: Parser, *, is_bool: bool = False, is_multi: bool = False) -> None:
        self.name = name
        self.text = text
        self.is_bool = is_bool
        self.is_multi = is_multi
        self.required = False
        self._parse = parse
        self.default = None if default is None else self.parsed(default)

    def parsed(self, value: Any) -> Any:
        """The value of a text.

        Raises:
            InvalidArgumentError: the flag does not take it.
        """
        try:
            return self._parse(value)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"flag --{self.name}={value}: {error}") from None


class _Option(NamedTuple):
    """The result of `FLAGS[name]`: a flag and its value."""

    flag: _Flag
    values: FlagValues

    @property
    def value(self) -> Any:
        """The value."""
        return getattr(self.values, self.flag.name)

    @property
    def name(self) -> str:
        """The name of the flag."""
        return self.flag.name

    @property
    def default(self) -> Any:
        """The value without one on the command line."""
        return self.flag.default

    @property
    def help(self) -> str:
        """The description of the flag."""
        return self.flag.text


class FlagValues:
    """The values of all flags, as attributes; the command line is read when a value is first asked for.

    A flag that is defined again, as by a cell that runs again, replaces the former one.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        values = self.__dict__
        values["_flags"] = {}
        values["_given"] = {}
        values["_is_parsed"] = False

    def define(self, flag: _Flag) -> None:
        """Add a flag, or replace the one of its name."""
        self._flags[flag.name] = flag
        self.__dict__["_is_parsed"] = False

    def is_parsed(self) -> bool:
        """True iff the command line has been read since the last definition."""
        return bool(self._is_parsed)

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Read a command line.

        Args:
            argv: the name of the program and its arguments.
            known_only: leave flags that are not defined among the remaining arguments.

        Returns:
            The name of the program and what is left after the flags.

        Raises:
            InvalidArgumentError: a value does not fit, a flag is unknown or a required one is missing.
        """
        rest = list(argv[:1])
        waiting = list(argv[1:])
        while waiting:
            item = waiting.pop(0)
            if item == "--":
                rest += waiting
                break
            name, has_value, value = item.lstrip("-").partition("=")
            flag = self._flags.get(name)
            negated = self._flags.get(name.removeprefix("no")) if name.startswith("no") else None
            if not item.startswith("-") or item == "-":
                rest.append(item)
            elif flag is not None:
                if not has_value:
                    if not flag.is_bool and not waiting:
                        raise InvalidArgumentError(f"Missing value for flag --{name}")
                    value = "true" if flag.is_bool else waiting.pop(0)
                parsed = flag.parsed(value)
                self._given[name] = [*self._given.get(name, []), *parsed] if flag.is_multi else parsed
            elif negated is not None and negated.is_bool and not has_value:
                self._given[negated.name] = False
            elif known_only:
                rest.append(item)
            else:
                raise InvalidArgumentError(f"Unknown command line flag '{name}'")
        self.__dict__["_is_parsed"] = True
        for flag in self._flags.values():
            if flag.required and getattr(self, flag.name) is None:
                raise InvalidArgumentError(f"flag --{flag.name}=None: Flag --{flag.name} must have a value other than None.")
        return rest

    def __getattr__(self, name: str) -> Any:
        if name == "__flags":  # read by early programs
            return self.flag_values_dict()
        if name.startswith("__"):
            raise AttributeError(name)
        flag = self._flags.get(name)
        if flag is None:
            raise AttributeError(f"there is no flag '{name}'; defined are: {', '.join(self._flags) or 'none'}")
        if not self._is_parsed:
            self(command_line(), known_only=True)
        return self._given.get(name, flag.default)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:
            raise AttributeError(f"there is no flag '{name}' to set; defined are: {', '.join(self._flags) or 'none'}")
        self._given[name] = value

    def __getitem__(self, name: str) -> _Option:
        return _Option(self._flags[name], self)

    def __contains__(self, name: object) -> bool:
        return name in self._flags

    def __iter__(self) -> Iterator[str]:
        return iter(self._flags)

    def __len__(self) -> int:
        return len(self._flags)

    def __dir__(self) -> list[str]:
        return sorted(self._flags)

    def __delattr__(self, name: str) -> None:
        self._flags.pop(name, None)
        self._given.pop(name, None)

    def flag_values_dict(self) -> dict[str, Any]:
        """Name and value of each flag."""
        return {name: getattr(self, name) for name in self._flags}

    def _parse_flags(self) -> None:
        """Read the command line now, as early programs ask for."""
        self(command_line(), known_only=True)

    def __repr__(self) -> str:
        return f"<flags {', '.join([f'{name}={value!r}' for name, value in self.flag_values_dict().items()])}>"


FLAGS: Final = FlagValues()


def _as_bool(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() in {"true", "t", "1"}:
            return True
        if value.lower() in {"false", "f", "0"}:
            return False
        raise ValueError("Non-boolean argument to boolean flag")
    return bool(value)


def _as_int(value: Any) -> int:
    if isinstance(value, str):
        return int(value, 0)
    if value != int(value):
        raise ValueError(f"required an integer, got {value}")
    return int(value)


def _as_list(value: Any) -> list[str]:
    return [item.strip() for item in value.split(",")] if isinstance(value, str) and value else list(value)


def DEFINE_string(name: str, default: str | None, help: str | None = None) -> None:
    """Define a flag for a text."""
    FLAGS.define(_Flag(name, default, help or "", str))


def DEFINE_boolean(name: str, default: bool | None, help: str | None = None) -> None:
    """Define a flag for True or False: `--name`, `--noname`, `--name=false`."""
    FLAGS.define(_Flag(name, default, help or "", _as_bool, is_bool=True))


DEFINE_bool = DEFINE_boolean


def DEFINE_integer(
    name: str, default: int | None, help: str | None = None, lower_bound: int | None = None, upper_bound: int | None = None
) -> None:
    """Define a flag for an integer within bounds."""
    FLAGS.define(_Flag(name, default, help or "", _bounded(_as_int, lower_bound, upper_bound)))


def DEFINE_float(
    name: str, default: float | None, help: str | None = None, lower_bound: float | None = None, upper_bound: float | None = None
) -> None:
    """Define a flag for a number within bounds."""
    FLAGS.define(_Flag(name, default, help or "", _bounded(float, lower_bound, upper_bound)))


def _bounded(parse: Parser, lower: float | None, upper: float | None) -> Parser:
    def parsed(value: Any) -> Any:
        number = parse(value)
        if (lower is not None and number < lower) or (upper is not None and number > upper):
            raise ValueError(f"required a number from {'any' if lower is None else lower} to {'any' if upper is None else upper}")
        return number

    return parsed


def DEFINE_enum(name: str, default: str | None, enum_values: Sequence[str], help: str | None = None) -> None:
    """Define a flag for one of several texts."""

    def parsed(value: Any) -> str:
        if value not in enum_values:
            raise ValueError(f"value should be one of <{'|'.join(enum_values)}>")
        return str(value)

    FLAGS.define(_Flag(name, default, help or "", parsed))


def DEFINE_list(name: str, default: Sequence[str] | str | None, help: str | None = None) -> None:
    """Define a flag for texts with commas between them."""
    FLAGS.define(_Flag(name, default, help or "", _as_list))


def DEFINE_multi_string(name: str, default: Any, help: str | None = None) -> None:
    """Define a flag that may be given several times; its value is the list of the texts."""
    FLAGS.define(_Flag(name, default, help or "", _several(str), is_multi=True))


def DEFINE_multi_integer(name: str, default: Any, help: str | None = None) -> None:
    """Define a flag that may be given several times; its value is the list of the integers."""
    FLAGS.define(_Flag(name, default, help or "", _several(_as_int), is_multi=True))


def DEFINE_multi_float(name: str, default: Any, help: str | None = None) -> None:
    """Define a flag that may be given several times; its value is the list of the numbers."""
    FLAGS.define(_Flag(name, default, help or "", _several(float), is_multi=True))


def _several(parse: Parser) -> Parser:
    return lambda value: [parse(item) for item in value] if isinstance(value, list | tuple) else [parse(value)]


def mark_flag_as_required(flag_name: str) -> None:
    """Require a value other than None when the command line is read."""
    FLAGS[flag_name].flag.required = True


def mark_flags_as_required(flag_names: Sequence[str]) -> None:
    """Require a value other than None for each of the flags."""
    for name in flag_names:
        mark_flag_as_required(name)
