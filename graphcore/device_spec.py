"""Parsing, printing, matching and merging of device names (`/job:worker/task:1/device:GPU:3`)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

import msgspec

from graphcore.errors import InvalidArgumentError

_JOB: Final = re.compile(r"/job:(?:\*|(?P<job>[A-Za-z][A-Za-z0-9_]*))")
_REPLICA: Final = re.compile(r"/replica:(?:\*|(?P<replica>[0-9]{1,18}))")
_TASK: Final = re.compile(r"/task:(?:\*|(?P<task>[0-9]{1,18}))")
_DEVICE: Final = re.compile(r"/device:(?:\*|(?P<type>[A-Za-z][A-Za-z0-9_]*))(?P<rest>:(?:\*|(?P<id>[0-9]{1,18})))?")
_SHORT: Final = re.compile(r"/(?P<type>cpu|CPU|gpu|GPU):(?:\*|(?P<id>[0-9]{1,18}))")
_LOCAL: Final = re.compile(r"(?:/device:)?(?P<type>[A-Za-z][A-Za-z0-9_]*):(?P<id>[0-9]{1,18})")

_PLURALS: Final = {"job": "jobs", "replica": "replicas", "task": "tasks", "type": "types", "id": "ids"}
_FORMS: Final = "parts such as /job:NAME, /replica:N, /task:N, /device:TYPE:N, /cpu:N or /gpu:N, each number possibly *"

OnClash = Literal["fail", "clear", "override"]


class DeviceSpec(msgspec.Struct, frozen=True, gc=False):
    """A full or partial device name. A part that is None is not set: it matches anything.

    Args:
        job: the name of the job.
        replica, task, id: non-negative numbers.
        type: the type of device, such as `CPU` or `GPU`.
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    type: str | None = None
    id: int | None = None

    @classmethod
    def parse(cls, text: str) -> DeviceSpec:
        """Read a full name; the same as `parse_full_name`."""
        return parse_full_name(text)

    @property
    def is_complete(self) -> bool:
        """True iff every part is set."""
        return None not in (self.job, self.replica, self.task, self.type, self.id)

    def to_string(self) -> str:
        """The parts that are set, in the order job, replica, task, device."""
        text = self.address_space
        if self.type is None and self.id is None:
            return text
        device_type = "*" if self.type is None else self.type
        device_id = "*" if self.id is None else self.id
        return f"{text}/device:{device_type}:{device_id}"

    def __str__(self) -> str:
        return self.to_string()

    @property
    def address_space(self) -> str:
        """The name without its device part: `/job:worker/replica:0/task:1`."""
        text = "" if self.job is None else f"/job:{self.job}"
        if self.replica is not None:
            text += f"/replica:{self.replica}"
        if self.task is not None:
            text += f"/task:{self.task}"
        return text

    def is_specification_of(self, more: DeviceSpec) -> bool:
        """True iff every part set here is set and equal in `more`."""
        return (
            (self.job is None or self.job == more.job)
            and (self.replica is None or self.replica == more.replica)
            and (self.task is None or self.task == more.task)
            and (self.type is None or self.type == more.type)
            and (self.id is None or self.id == more.id)
        )

    def is_completely_specified_by(self, actual: DeviceSpec) -> bool:
        """True iff `actual` is a complete name and matches every part set here."""
        return actual.is_complete and self.is_specification_of(actual)

    def is_compatible_with(self, other: DeviceSpec) -> bool:
        """True iff no part that both set differs."""
        return all(mine is None or theirs is None or mine == theirs for _, mine, theirs in self._pairs(other))

    def is_same_address_space(self, other: DeviceSpec) -> bool:
        """True iff job, replica and task are set in both and equal."""
        here = (self.job, self.replica, self.task)
        return None not in here and here == (other.job, other.replica, other.task)

    def merge(self, other: DeviceSpec, allow_soft: bool = False) -> DeviceSpec:
        """The union of the parts that the two names set.

        Args:
            allow_soft: a clash of types clears type and id, a clash of ids clears the id, instead of failing.

        Raises:
            InvalidArgumentError: a part is set in both and differs.
        """
        return self._merged(other, "clear" if allow_soft else "fail")

    def merge_override(self, other: DeviceSpec) -> DeviceSpec:
        """The union of the parts that the two names set; `other` wins if device types or ids clash.

        Raises:
            InvalidArgumentError: job, replica or task are set in both and differ.
        """
        return self._merged(other, "override")

    def merge_unset(self, other: DeviceSpec) -> DeviceSpec:
        """This name, with the parts it does not set taken from `other`. Never fails."""
        return msgspec.convert({part: theirs if mine is None else mine for part, mine, theirs in self._pairs(other)}, DeviceSpec)

    def _pairs(self, other: DeviceSpec) -> list[tuple[str, str | int | None, str | int | None]]:
        return [
            ("job", self.job, other.job),
            ("replica", self.replica, other.replica),
            ("task", self.task, other.task),
            ("type", self.type, other.type),
            ("id", self.id, other.id),
        ]

    def _merged(self, other: DeviceSpec, on_clash: OnClash) -> DeviceSpec:
        parts: dict[str, str | int | None] = {}
        for part, mine, theirs in self._pairs(other):
            parts[part] = theirs if mine is None else mine
            if mine is None or theirs is None or mine == theirs:
                continue
            if on_clash == "fail" or part not in ("type", "id"):
                raise InvalidArgumentError(
                    f"Cannot merge devices with incompatible {_PLURALS[part]}: '{self.to_string()}' and '{other.to_string()}'"
                )
            if on_clash == "override":
                parts[part] = theirs
                continue
            # Without its type an id is meaningless, so both are cleared.
            parts[part] = None
            parts["id"] = None
            break
        return msgspec.convert(parts, DeviceSpec)


@lru_cache(maxsize=4096)
def parse_full_name(text: str) -> DeviceSpec:
    """Parse a full or partial device name. Parts may come in any order; `*` leaves a part unset.

    `/cpu:N` and `/gpu:N` are short for `/device:CPU:N` and `/device:GPU:N`; `/` and the empty text set nothing.

    Raises:
        InvalidArgumentError: the text is not a device name.
    """
    parts: dict[str, str | int | None] = {}
    at = 0
    while at < len(text) and text != "/":
        match = _part_at(text, at)
        if match is None:
            raise InvalidArgumentError(f"Malformed device name '{text}' at '{text[at:]}': required {_FORMS}").advise(
                "Write `/cpu:0` for the processor, or `/gpu:0` for the first GPU.",
                required="a device such as /cpu:0 or /gpu:0",
                came=f"'{text}'",
            )
        for part, value in match.groupdict().items():
            if part in ("job", "type"):
                parts[part] = value
            elif part != "rest":
                parts[part] = None if value is None else int(value)
        if match.re is _SHORT:
            parts["type"] = match["type"].upper()
        at = match.end()
    return msgspec.convert(parts, DeviceSpec)


def _part_at(text: str, at: int) -> re.Match[str] | None:
    for pattern in (_JOB, _REPLICA, _TASK, _DEVICE, _SHORT):
        match = pattern.match(text, at)
        if match is not None:
            return match
    return None


def parse_local_name(text: str) -> DeviceSpec:
    """Read `CPU:1` or `/device:CPU:1`: a type and a number.

    Raises:
        InvalidArgumentError: the text is not a local device name.
    """
    match = _LOCAL.fullmatch(text)
    if match is None:
        raise InvalidArgumentError(f"Malformed local device name '{text}': required TYPE:N, such as CPU:0 or /device:GPU:1")
    return DeviceSpec(type=match["type"], id=int(match["id"]))


def parse_full_or_local_name(text: str) -> DeviceSpec:
    """Read either form of a device name.

    Raises:
        InvalidArgumentError: the text is neither.
    """
    if _LOCAL.fullmatch(text):
        return parse_local_name(text)
    return parse_full_name(text)


def full_name(job: str, replica: int, task: int, device_type: str, device_id: int) -> str:
    """The complete name: `/job:hello/replica:1/task:2/device:CPU:3`.

    Raises:
        InvalidArgumentError: a part would not read back.
    """
    text = DeviceSpec(job, replica, task, device_type, device_id).to_string()
    parse_full_name(text)
    return text


def local_name(name_or_type: str, device_id: int | None = None) -> str:
    """`/device:CPU:1` from a type and a number, or from a full name.

    Raises:
        InvalidArgumentError: a full name that does not parse, or that sets no type and number.
    """
    if device_id is not None:
        return DeviceSpec(type=name_or_type, id=device_id).to_string()
    spec = parse_full_name(name_or_type)
    if spec.type is None or spec.id is None:
        raise InvalidArgumentError(f"A local device name needs a type and a number, but '{name_or_type}' does not say both")
    return DeviceSpec(type=spec.type, id=spec.id).to_string()


def split_device_name(name: str) -> tuple[str, str]:
    """The address space and the device of a name: (`/job:foo/replica:1/task:2`, `CPU:1`).

    Raises:
        InvalidArgumentError: the name does not parse or has no device part.
    """
    spec = parse_full_name(name)
    if spec.type is None:
        raise InvalidArgumentError(f"Device name '{name}' has no device part: required /device:TYPE:N")
    return spec.address_space, f"{spec.type}:{'*' if spec.id is None else spec.id}"


def is_same_address_space(a: str, b: str) -> bool:
    """True iff both names set job, replica and task, and equally. A name that does not parse is in no address space."""
    try:
        return parse_full_name(a).is_same_address_space(parse_full_name(b))
    except InvalidArgumentError:
        return False


def are_compatible_dev_names(a: str, b: str) -> bool:
    """True iff no part that both names set differs."""
    return parse_full_name(a).is_compatible_with(parse_full_name(b))


def is_specification(less: str, more: str) -> bool:
    """True iff every part set in `less` is set and equal in `more`."""
    return parse_full_name(less).is_specification_of(parse_full_name(more))


def is_complete_specification(pattern: str, actual: str) -> bool:
    """True iff `actual` is a complete name and matches every part set in `pattern`."""
    return parse_full_name(pattern).is_completely_specified_by(parse_full_name(actual))


def merge_dev_names(target: str, other: str, allow_soft_placement: bool = False) -> str:
    """`DeviceSpec.merge` on texts."""
    return parse_full_name(target).merge(parse_full_name(other), allow_soft_placement).to_string()


def merge_override_dev_names(target: str, other: str) -> str:
    """`DeviceSpec.merge_override` on texts."""
    return parse_full_name(target).merge_override(parse_full_name(other)).to_string()


def merge_unset_dev_names(target: str, other: str) -> str:
    """`DeviceSpec.merge_unset` on texts."""
    return parse_full_name(target).merge_unset(parse_full_name(other)).to_string()


def get_names_for_device_mappings(name: str | DeviceSpec) -> list[str]:
    """The full form and the short form of a complete name; nothing for a partial one."""
    spec = parse_full_name(name) if isinstance(name, str) else name
    if spec.type is None or not spec.is_complete:
        return []
    return [spec.to_string(), f"{spec.address_space}/{spec.type.lower()}:{spec.id}"]


def get_local_names_for_device_mappings(name: str | DeviceSpec) -> list[str]:
    """The local forms, `/device:GPU:1` and `GPU:1`; nothing if type or number is not set."""
    spec = parse_full_name(name) if isinstance(name, str) else name
    if spec.type is None or spec.id is None:
        return []
    return [DeviceSpec(type=spec.type, id=spec.id).to_string(), f"{spec.type}:{spec.id}"]


def canonicalize_device_name(name: str, basename: str) -> str:
    """The complete name in standard order; parts missing in `name` come from `basename`.

    Raises:
        InvalidArgumentError: `name` does not parse, or `basename` does not parse or is not complete.
    """
    base = parse_full_name(basename)
    if not base.is_complete:
        raise InvalidArgumentError(f"Basename: {basename} should be fully specified.")
    return parse_full_or_local_name(name).merge_unset(base).to_string()
