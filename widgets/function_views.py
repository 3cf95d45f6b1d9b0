"""The attrs, uses and breadcrumbs of a function in its view, beside the pictures."""

from __future__ import annotations

import msgspec


class AttrField(msgspec.Struct, frozen=True, kw_only=True):
    """One attr of a function in the form: `value` is the field's text, `error` the error in it.

    `kind` is a kind of attr (`type`, `list(int)`); `choices` are the values to choose from, empty for free text.
    """

    name: str
    kind: str
    value: str
    choices: list[str] = []
    hint: str = ""
    doc: str = ""
    error: str = ""


class Crumb(msgspec.Struct, frozen=True, kw_only=True):
    """A breadcrumb: the graph, a function, a gradient."""

    label: str
    detail: str = ""


class FunctionUse(msgspec.Struct, frozen=True, kw_only=True):
    """A use to choose: traced for these types, or a call."""

    label: str
    detail: str = ""
