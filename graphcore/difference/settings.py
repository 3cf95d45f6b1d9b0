"""Settings of layers in the words of no framework: strides, padding, epsilon and others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from graphcore.difference.changes import Change
from graphcore.difference.kinds import kind_of, sizes_of, traits_of
from graphcore.difference.state import GraphState, NodeState
from graphcore.difference.wiring import CONTROL, parse_input
from graphcore.op_names import plain_op

_CLOSE: Final = 1e-4
"""The relative difference of two numbers that are one: attrs are float32 in some files."""
_PLACES: Final[dict[str, dict[str, int]]] = {
    "conv": {"stride": 3, "padding": 4, "dilation": 5, "groups": 6},
    "conv_transpose": {"stride": 3, "groups": 6, "dilation": 7},
    "max_pool": {"kernel_size": 1, "stride": 2, "padding": 3, "dilation": 4, "ceil_mode": 5},
    "avg_pool": {"kernel_size": 1, "stride": 2, "padding": 3, "ceil_mode": 4},
    "batch_norm": {"eps": 7},
    "instance_norm": {"eps": 7},
    "layer_norm": {"eps": 4},
    "group_norm": {"eps": 4},
    "rms_norm": {"eps": 3},
    "softmax": {"dim": 1},
    "log_softmax": {"dim": 1},
    "cat": {"dim": 1},
    "concat": {"dim": 1},
    "leaky_relu": {"negative_slope": 1},
}
"""The places of the arguments of PyTorch's functions, which a call may give without their names."""
_SPEC: Final = re.compile(r"(lhs|rhs|out)_spec=\(([\d, ]+)\)")
_CHANNELS_FIRST: Final = frozenset({"onnx", "torch", "aten"})
_WINDOWED: Final = frozenset({"convolution", "transposed convolution", "pooling"})
_CONVOLUTIONS: Final = frozenset({"convolution", "transposed convolution"})
_WITH_SETTINGS: Final = _WINDOWED | {"normalization", "leaky relu", "softmax", "logsoftmax", "concatenation", "gelu"}
_OF_PYTORCH: Final = frozenset({"torch", "aten"})


class _Padding(msgspec.Struct, frozen=True):
    """The padding of each axis: as stated, and as far as windows reach, None if sizes are unknown."""

    stated: tuple[tuple[int, int], ...]
    used: tuple[tuple[int, int], ...] | None


class _Axis(msgspec.Struct, frozen=True):
    """An axis, with the sizes of the output, None if one is unknown."""

    number: int
    sizes: tuple[int, ...] | None


Setting = float | str | tuple[int, ...] | _Padding | _Axis


def setting_changes(a: GraphState, olds: Sequence[str], b: GraphState, news: Sequence[str]) -> Iterator[Change]:
    """The settings in which a layer of one framework differs from that of another. What only one side states is left out.

    Args:
        a, olds: the earlier state, and the nodes of the layer in it.
        b, news: those of the later one.
    """
    if len(olds) == len(news) == 1 and kind_of(a.nodes[olds[0]]) not in _WITH_SETTINGS:
        return
    first, second = _of_all(a, olds), _of_all(b, news)
    for name, old in first.items():
        new = second.get(name)
        if new is not None and not _agree(old, new):
            yield Change("attr", name, *_texts(old, new))


def _of_all(state: GraphState, names: Sequence[str]) -> dict[str, Setting]:
    """The settings of the nodes of a layer; padding by a node of its own is not known."""
    settings: dict[str, Setting] = {}
    for name in reversed(names):
        settings |= _Reader(state, name).settings()
    if any(
        kind_of(state.nodes[name]) in {"pad", "constantpadnd", "padv2", "mirrorpad", "zeropadding2d", "zeropadding1d"} for name in names
    ):
        settings.pop("padding", None)
    epsilon = _epsilon_before_root(state, names)
    return settings if epsilon is None else {"epsilon": epsilon, **settings}


def _agree(old: Setting, new: Setting) -> bool:
    if isinstance(old, _Padding) and isinstance(new, _Padding):
        return old.used == new.used if old.used is not None and new.used is not None else old.stated == new.stated
    if isinstance(old, _Axis) and isinstance(new, _Axis):
        if old.sizes is None or new.sizes is None:
            return True
        if old.sizes == new.sizes:
            return old.number == new.number
        return len(old.sizes) != len(new.sizes) or old.sizes[old.number] == new.sizes[new.number]
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=_CLOSE)
    return type(old) is not type(new) or old == new


def _texts(old: Setting, new: Setting) -> tuple[str, str]:
    if isinstance(old, _Padding) and isinstance(new, _Padding):
        return str([*map(list, old.stated)]), str([*map(list, new.stated)])
    if isinstance(old, _Axis) and isinstance(new, _Axis) and old.sizes != new.sizes:
        return _axis_text(old), _axis_text(new)
    return _text(old), _text(new)


def _axis_text(axis: _Axis) -> str:
    """The number of an axis and its size, by which it is recognised in another layout."""
    return str(axis.number) if axis.sizes is None else f"{axis.number} (of {axis.sizes[axis.number]})"


def _text(value: Setting) -> str:
    if isinstance(value, _Axis):
        return str(value.number)
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(list(value)) if isinstance(value, tuple) else str(value)


class _Reader:
    """Reads the settings of a node."""

    def __init__(self, state: GraphState, name: str) -> None:
        self._state = state
        self._node = node = state.nodes[name]
        self._domain = node.op.partition(".")[0]
        self._word = plain_op(node.op).lower()
        self._kind = kind_of(node)
        self._rank = len(dims) if node.shapes and (dims := node.shapes[0].dims) is not None else 0

    def settings(self) -> dict[str, Setting]:
        """The settings that are stated, and defaults of the framework."""
        settings: dict[str, Setting | None] = {}
        if self._kind in _WINDOWED and self._rank > 2 and not self._is_global():
            settings |= {"strides": self._strides(), "dilations": self._dilations(), "padding": self._padding()}
            settings |= {"groups": self._groups()} if self._kind == "convolution" else {"window": self._window()}
        elif self._kind == "normalization":
            settings["epsilon"] = self._float("epsilon", "eps", default=1e-5 if self._domain in {"onnx", *_OF_PYTORCH} else None)
        elif self._kind == "leaky relu":
            default = 0.01 if self._domain in {"onnx", *_OF_PYTORCH} else None
            settings["slope"] = self._float("negative_slope", "alpha", default=default)
        elif self._kind in {"softmax", "logsoftmax", "concatenation"}:
            settings["axis"] = self._axis()
        elif self._kind == "gelu":
            settings["approximation"] = _word(self._stated("approximate"))
        return {name: value for name, value in settings.items() if value is not None}

    # ---- attrs ----------------------------------------------------------------------------------------------------------

    def _stated(self, *names: str) -> Any:
        """The first of some attrs that is there, of PyTorch also by its place; None if none is."""
        attrs = self._node.attr
        for name in names:
            if name in attrs:
                return attrs[name]
        if self._domain in _OF_PYTORCH:
            places = _PLACES.get(re.sub(r"\d*d?(_with_indices)?_?$", "", self._word), {})
            for name in names:
                if name in places and (value := attrs.get(f"argument {places[name]}")) is not None:
                    return value
        return None

    def _float(self, *names: str, default: float | None) -> float | None:
        value = self._stated(*names)
        return float(value) if isinstance(value, int | float) else default

    def _numbers(self, value: Any) -> tuple[int, ...] | None:
        """One number for each axis of a window, from one or as many."""
        count = self._rank - 2
        if isinstance(value, int):
            return (value,) * count
        if isinstance(value, tuple | list) and value and all(isinstance(item, int) for item in value):
            return tuple(value) * (count if len(value) == 1 else 1)
        return None

    def _of_tflite(self, *names: str) -> tuple[int, ...] | None:
        values = [self._node.attr.get(name) for name in names]
        numbers = tuple([value for value in values if isinstance(value, int) and value > 0])
        return numbers if len(numbers) == len(names) == self._rank - 2 else None

    def _spatial(self, value: Any) -> Any:
        """The part of a window over all axes that is for those of a picture."""
        if not isinstance(value, tuple | list) or len(value) != self._rank:
            return value
        sizes = self._numbers_of_window()
        return value[2:] if sizes is not None and sizes[1] == 1 and sizes[-1] != 1 else value[1:-1]

    def _numbers_of_window(self) -> tuple[int, ...] | None:
        window = self._node.attr.get("window_dimensions")
        return tuple(window) if isinstance(window, tuple | list) and len(window) == self._rank else None

    # ---- windows --------------------------------------------------------------------------------------------------------

    def _is_global(self) -> bool:
        return "global" in self._word or "adaptive" in self._word or (self._domain == "tfl" and self._word == "mean")

    def _strides(self) -> tuple[int, ...] | None:
        if self._domain == "tfl":
            return self._of_tflite("stride_h", "stride_w")
        strides = self._numbers(self._spatial(self._stated("strides", "stride", "window_strides")))
        if strides is None and self._kind == "pooling" and self._domain in {"keras", *_OF_PYTORCH}:
            return self._window()
        return strides or self._ones()

    def _dilations(self) -> tuple[int, ...] | None:
        if self._domain == "tfl":
            return self._of_tflite("dilation_h_factor", "dilation_w_factor") or self._ones()
        return (
            self._numbers(self._spatial(self._stated("dilations", "dilation", "dilation_rate", "rhs_dilation", "window_dilation")))
            or self._ones()
        )

    def _ones(self) -> tuple[int, ...]:
        return (1,) * (self._rank - 2)

    def _groups(self) -> str | None:
        value = self._stated("group", "groups", "feature_group_count")
        if isinstance(value, int):
            return str(value)
        return "1" if self._domain in {"onnx", *_OF_PYTORCH} else None

    def _window(self) -> tuple[int, ...] | None:
        if self._kind in _CONVOLUTIONS:
            return self._window_of_filter()
        if self._domain == "tfl":
            return self._of_tflite("filter_height", "filter_width")
        return self._numbers(self._spatial(self._stated("kernel_shape", "kernel_size", "pool_size", "window_dimensions")))

    def _window_of_filter(self) -> tuple[int, ...] | None:
        stated = self._numbers(self._stated("kernel_shape", "kernel_size"))
        if stated is not None:
            return stated
        sizes = self._sizes_of_input(1)
        if sizes is None or len(sizes) != self._rank:
            return None
        spec = self._spec("rhs")
        if spec is not None:
            return tuple([sizes[axis] for axis in spec[2:]])
        return sizes[2:] if self._domain in _CHANNELS_FIRST else sizes[1:-1] if self._domain == "tfl" else None

    def _padding(self) -> _Padding | None:
        if self._kind == "transposed convolution":
            return None  # each framework counts it in another way
        way = _word(self._stated("auto_pad", "padding")).lower() or (
            "same" if self._domain == "tfl" else ""
        )  # what files of TFLite leave out
        stated = self._stated("pads") if self._domain == "onnx" else self._spatial(self._stated("padding"))
        pairs: tuple[tuple[int, int], ...] | None
        if way.startswith("same"):
            pairs = self._same(is_lower=way == "same_lower")
        elif way == "valid" or stated is None:
            pairs = ((0, 0),) * (self._rank - 2) if way == "valid" or self._domain in _CHANNELS_FIRST else None
        elif self._domain == "onnx":
            numbers = self._numbers(stated)
            pairs = None if numbers is None else tuple(zip(numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :], strict=False))
        elif isinstance(stated, tuple | list) and all(isinstance(item, tuple | list) and len(item) == 2 for item in stated):
            pairs = tuple([(int(low), int(high)) for low, high in stated])
        else:
            numbers = self._numbers(stated)
            pairs = None if numbers is None else tuple([(number, number) for number in numbers])
        return None if pairs is None or len(pairs) != self._rank - 2 else _Padding(pairs, self._used(pairs))

    def _same(self, *, is_lower: bool) -> tuple[tuple[int, int], ...] | None:
        """The padding with which the output has the sizes of the input by strides."""
        reach, strides, sizes = self._reach(), self._strides(), self._picture(self._sizes_of_input(0), "lhs")
        if reach is None or strides is None or (sizes is None and any(stride > 1 for stride in strides)):
            return None
        pairs = []
        for place, (length, stride) in enumerate(zip(reach, strides, strict=False)):
            size = 0 if sizes is None else sizes[place]
            whole = length - 1 if sizes is None else max((-(-size // stride) - 1) * stride + length - size, 0)
            pairs.append((whole - whole // 2, whole // 2) if is_lower else (whole // 2, whole - whole // 2))
        return tuple(pairs)

    def _used(self, pairs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...] | None:
        """The padding that windows reach: with strides the last of it may be left over."""
        reach, strides = self._reach(), self._strides()
        before, after = self._picture(self._sizes_of_input(0), "lhs"), self._picture(_sizes(self._node), "out")
        if reach is None or strides is None or before is None or after is None:
            return None
        rows = zip(pairs, reach, strides, before, after, strict=False)
        return tuple(
            [(low, min(high, max((out - 1) * stride + length - size - low, 0))) for (low, high), length, stride, size, out in rows]
        )

    def _reach(self) -> tuple[int, ...] | None:
        """The length of a window along each axis, with the gaps of dilation."""
        window, dilations = self._window(), self._dilations()
        if window is None or dilations is None:
            return None
        return tuple([(size - 1) * dilation + 1 for size, dilation in zip(window, dilations, strict=False)])

    def _picture(self, sizes: tuple[int, ...] | None, which: str) -> tuple[int, ...] | None:
        """The sizes of a tensor without batch and channels, None if one is unknown."""
        if sizes is None or len(sizes) != self._rank:
            return None
        spec = self._spec(which)
        is_first = self._domain in _CHANNELS_FIRST or _word(self._stated("data_format")) == "channels_first"
        if spec is not None:
            picture = tuple([sizes[axis] for axis in spec[2:]])
        elif self._domain == "jax":
            picture = tuple(self._spatial(sizes))
        else:
            picture = sizes[2:] if is_first else sizes[1:-1]
        return None if any(size < 0 for size in picture) else picture

    def _spec(self, which: str) -> tuple[int, ...] | None:
        """The axes of batch, channels and picture, as dimension numbers of JAX have them."""
        specs = {side: tuple(map(int, axes.split(","))) for side, axes in _SPEC.findall(str(self._node.attr.get("dimension_numbers", "")))}
        spec = specs.get(which)
        return spec if spec is not None and len(spec) == self._rank else None

    def _sizes_of_input(self, place: int) -> tuple[int, ...] | None:
        inputs = [parse_input(text) for text in self._node.node_def.input]
        producer = self._state.nodes.get(inputs[place][0]) if place < len(inputs) else None
        if producer is None or inputs[place][1] not in {"0", ""}:
            return None
        return _sizes(producer)

    # ---- axes -----------------------------------------------------------------------------------------------------------

    def _axis(self) -> _Axis | None:
        value = self._stated("axis", "dim", "dimension")
        if value is None and (self._domain == "tfl" and self._word == "softmax"):
            value = -1
        if not isinstance(value, int) or not self._rank:
            return None
        return _Axis(value % self._rank, sizes_of(self._node))


def _sizes(node: NodeState) -> tuple[int, ...] | None:
    """The sizes of the first output, -1 for unknown ones; None for an unknown rank."""
    dims = node.shapes[0].dims if node.shapes else None
    return None if dims is None else tuple([dim.value for dim in dims])


def _word(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""


def _epsilon_before_root(state: GraphState, names: Sequence[str]) -> float | None:
    """The number that a normalization of several ops adds before it takes a root; None if there is none."""
    for name in names:
        if kind_of(state.nodes[name]) in {"sqrt", "rsqrt"}:
            for producer in _producers(state, name):
                if kind_of(state.nodes[producer]) in {"addition", "add"}:
                    numbers = [_number(state.nodes[other]) for other in _producers(state, producer)]
                    return next((number for number in numbers if number is not None and 0 < number < 1), None)
    return None


def _producers(state: GraphState, name: str) -> list[str]:
    producers = [producer for producer, output in map(parse_input, state.nodes[name].node_def.input) if output != CONTROL]
    return [producer for producer in producers if producer in state.nodes]


def _number(node: NodeState) -> float | None:
    """The number that a constant holds, None for a node that holds none."""
    if traits_of(node).role != "constant":
        return None
    for value in node.attr.values():
        if isinstance(value, float):
            return value
        if isinstance(value, bytes | str):
            try:
                return float(_word(value))
            except ValueError:
                continue
    return None
