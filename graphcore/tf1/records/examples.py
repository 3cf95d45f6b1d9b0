"""`tf.train.Example` and its parts: messages with named lists of numbers and strings."""

from __future__ import annotations

from typing import Final

from graphcore.definitions.wire.schema import Example, message_class

__all__ = ["BytesList", "Example", "Feature", "FeatureList", "FeatureLists", "Features", "FloatList", "Int64List", "SequenceExample"]

BytesList: Final = message_class("BytesList")
Feature: Final = message_class("Feature")
FeatureList: Final = message_class("FeatureList")
FeatureLists: Final = message_class("FeatureLists")
Features: Final = message_class("Features")
FloatList: Final = message_class("FloatList")
Int64List: Final = message_class("Int64List")
SequenceExample: Final = message_class("SequenceExample")
