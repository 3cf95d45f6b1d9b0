"""`tf.contrib.layers`: pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from graphcore.tf1.contrib.arg_scopes import add_arg_scope
from graphcore.tf1.contrib.layers.base import channels
from graphcore.tf1.contrib.layers.utils import collect_named_outputs
from graphcore.tf1.framework import name_scope
from graphcore.tf1.layers.pooling import AveragePooling2D, AveragePooling3D, MaxPooling2D, MaxPooling3D


def _pooled(kind: Any, dims: int, default: str, name: str) -> Callable[..., Any]:
    def pool(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = "NHWC",
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Any:
        with name_scope(scope or default) as opened:
            layer = kind(kernel_size, stride, padding, channels(data_format), _scope=opened)
            return collect_named_outputs(outputs_collections, opened, layer(inputs))

    pool.__doc__ = f"Pooling of {_KINDS[dims]}; the name scope is {default} by default. inputs: [b, *size, c] -> y: [b, *output size, c]."
    pool.__name__ = pool.__qualname__ = name
    return add_arg_scope(pool)


_KINDS: Final = {2: "images", 3: "volumes"}
avg_pool2d = _pooled(AveragePooling2D, 2, "AvgPool2D", "avg_pool2d")
avg_pool3d = _pooled(AveragePooling3D, 3, "AvgPool3D", "avg_pool3d")
max_pool2d = _pooled(MaxPooling2D, 2, "MaxPool2D", "max_pool2d")
max_pool3d = _pooled(MaxPooling3D, 3, "MaxPool3D", "max_pool3d")
