"""Calls of TensorFlow and their results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.conftest import Oracle
from tests.support.remote import RemoteError


def test_the_oracle_is_the_release_that_the_rules_were_read_from(oracle: Oracle) -> None:
    assert oracle.run("answer = tf.__version__").answer.startswith("2.21.")


def test_arrays_go_in_and_come_out(oracle: Oracle) -> None:
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    answer = oracle.run("outputs['y'] = tf.raw_ops.Square(x=inputs['x'])\nanswer = arguments['note']", {"x": given}, note="kept")
    assert answer.answer == "kept"
    np.testing.assert_array_equal(answer.outputs["y"], given**2)


def test_bfloat16_and_strings_keep_their_type(oracle: Oracle) -> None:
    answer = oracle.run("outputs['h'] = tf.constant([1.5], tf.bfloat16)\noutputs['s'] = tf.constant([b'a', b'bc'])")
    assert answer.outputs["h"].dtype.name == "bfloat16"
    assert answer.outputs["s"].tolist() == [b"a", b"bc"]


def test_an_error_of_tensorflow_arrives_with_its_class(oracle: Oracle) -> None:
    with pytest.raises(RemoteError) as caught:
        oracle.run("tf.raw_ops.MatMul(a=[[1.0, 2.0]], b=[[1.0, 2.0]])")
    assert caught.value.kind == "InvalidArgumentError"
