"""Device names: every rule, and the round trip."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcore import device_spec as ds
from graphcore.device_spec import DeviceSpec
from graphcore.errors import InvalidArgumentError

A = "/job:work/replica:1/task:3/device:GPU:3"
BASE = "/job:foo/replica:10/task:0/device:CPU:0"

specs = st.builds(
    DeviceSpec,
    job=st.none() | st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True),
    replica=st.none() | st.integers(0, 10**6),
    task=st.none() | st.integers(0, 10**6),
    type=st.none() | st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True),
    id=st.none() | st.integers(0, 10**6),
)


def test_a_full_name_has_its_parts_in_order_d1() -> None:
    assert ds.full_name("hello", 1, 2, "CPU", 3) == "/job:hello/replica:1/task:2/device:CPU:3"


def test_a_full_name_is_refused_when_it_would_not_read_back_d1() -> None:
    with pytest.raises(InvalidArgumentError, match="123"):
        ds.full_name("123", 1, 2, "CPU", 3)


@pytest.mark.parametrize(
    "text",
    [
        "/job:123/replica:1/task:2/gpu:3",
        "/job:123/replica:1/task:2/gpu:",
        "/job:123/replica:1/task:2/device:gpu:",
        "/job:123/replica:-1/task:2/gpu:3",
        "/job:foo/replica:-1/task:2/gpu:3",
        "/job:foo/replica:1/task:-2/gpu:3",
        "/job:foo/replica:1/task:2/bar:3",
        "/job:foo/replica:1/task:2/gpu:",
        "/job:foo/replica:1/task:2/gpu:3/extra",
        "/job:foo/replica:1/task:2/device:GPU:3 ",
        "job:foo",
        "gpu:3",
        "/gpu",
        "//",
        "/job:foo/",
    ],
    ids=lambda text: f"D2[{text}]",
)
def test_a_malformed_name_is_refused_and_named_in_the_error(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ds.parse_full_name(text)
    assert f"'{text}'" in caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/job:foo/replica:1/task:2/gpu:3", DeviceSpec("foo", 1, 2, "GPU", 3)),
        ("/job:foo_bar/replica:1/task:2/device:GPU:3", DeviceSpec("foo_bar", 1, 2, "GPU", 3)),
        ("/job:*/replica:4/gpu:*", DeviceSpec(None, 4, None, "GPU", None)),
        ("/job:*/device:GPU/replica:4", DeviceSpec(None, 4, None, "GPU", None)),
        ("/job:*/replica:4/device:myspecialdevice:13", DeviceSpec(None, 4, None, "myspecialdevice", 13)),
        ("/", DeviceSpec()),
        ("", DeviceSpec()),
        ("/task:2/job:foo/cpu:1/replica:7", DeviceSpec("foo", 7, 2, "CPU", 1)),
        ("/CPU:0", DeviceSpec(type="CPU", id=0)),
        ("/GPU:*", DeviceSpec(type="GPU")),
        ("/device:*:3", DeviceSpec(id=3)),
        ("/device:gpu:3", DeviceSpec(type="gpu", id=3)),
    ],
    ids=lambda value: f"D3[{value}]" if isinstance(value, str) else "",
)
def test_a_full_name_is_read_in_any_order(text: str, expected: DeviceSpec) -> None:
    assert DeviceSpec.parse(text) == expected


@pytest.mark.parametrize(
    ("b", "same"),
    [
        ("/job:foo/replica:1/task:2/gpu:3", True),
        ("/job:foo/replica:1/task:3/gpu:3", False),
        ("/job:foo/replica:2/task:2/gpu:3", False),
        ("/job:bar/replica:1/task:2/gpu:3", False),
        ("/job:foo/replica:1/gpu:3", False),
        ("not a name", False),
    ],
    ids=lambda value: f"D4[{value}]",
)
def test_an_address_space_is_job_replica_and_task(b: str, same: bool) -> None:
    a = "/job:foo/replica:1/task:2/cpu:3"
    assert ds.is_same_address_space(a, b) is same
    assert ds.is_same_address_space(b, a) is same


def test_two_names_without_an_address_space_share_none_d4() -> None:
    assert not ds.is_same_address_space("/cpu:0", "/cpu:0")


def test_a_local_name_is_type_and_number_d5() -> None:
    assert ds.local_name("CPU", 1) == "/device:CPU:1"
    assert ds.local_name("/job:foo/replica:1/task:2/cpu:3") == "/device:CPU:3"


def test_a_local_name_needs_type_and_number_d5() -> None:
    with pytest.raises(InvalidArgumentError, match="type and a number"):
        ds.local_name("/job:foo/cpu:*")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("CPU:10", DeviceSpec(type="CPU", id=10)), ("/device:CPU:1", DeviceSpec(type="CPU", id=1))],
    ids=lambda value: f"D5[{value}]" if isinstance(value, str) else "",
)
def test_both_spellings_of_a_local_name_are_read(text: str, expected: DeviceSpec) -> None:
    assert ds.parse_local_name(text) == expected


@pytest.mark.parametrize("text", ["abc", "cpu:abc", "abc:", ":1", "/job:foo", "", "CPU:1 "], ids=lambda text: f"D5[{text}]")
def test_what_is_no_local_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Malformed local device name"):
        ds.parse_local_name(text)


def test_full_and_local_names_are_both_accepted_where_both_may_come_d5() -> None:
    assert ds.parse_full_or_local_name(A) == ds.parse_full_name(A)
    assert ds.parse_full_or_local_name("CPU:7") == DeviceSpec(type="CPU", id=7)
    with pytest.raises(InvalidArgumentError, match="'abc'"):
        ds.parse_full_or_local_name("abc")


@given(spec=specs)
def test_printing_and_reading_is_a_round_trip_d6(spec: DeviceSpec) -> None:
    assert DeviceSpec.parse(spec.to_string()) == spec


@pytest.mark.parametrize("subset", range(32), ids=lambda subset: f"D6[{subset:05b}]")
def test_every_subset_of_parts_prints_in_order_and_reads_back(subset: int) -> None:
    parts = {"job": "foo", "replica": 3, "task": 2, "type": "GPU", "id": 1}
    chosen = {name: value for at, (name, value) in enumerate(parts.items()) if subset & 1 << at}
    spec = msgspec.convert(chosen, DeviceSpec)
    text = spec.to_string()
    assert DeviceSpec.parse(text) == spec
    found = [word for word in ("/job:foo", "/replica:3", "/task:2", "/device:") if word in text]
    assert found == sorted(found, key=text.index)
    assert len(found) == sum(part is not None for part in (spec.job, spec.replica, spec.task)) + (
        spec.type is not None or spec.id is not None
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("/gpu:3", "/device:GPU:3"),
        ("/cpu:3", "/device:CPU:3"),
        ("/device:gpu:3", "/device:gpu:3"),
        ("/device:GPU", "/device:GPU:*"),
        ("/gpu:*", "/device:GPU:*"),
        ("/task:2/job:foo", "/job:foo/task:2"),
        ("/", ""),
    ],
    ids=lambda value: f"D6[{value}]",
)
def test_a_name_prints_in_standard_form(text: str, printed: str) -> None:
    assert str(DeviceSpec.parse(text)) == printed


@pytest.mark.parametrize(
    ("a", "b", "compatible"),
    [
        ("/job:work/replica:1/task:3", "/device:CPU:*", True),
        ("/job:work/replica:1", "/task:2/gpu:1", True),
        ("", A, True),
        ("/job:work", "/job:foo", False),
        ("/gpu:1", "/gpu:2", False),
        ("/gpu:1", "/cpu:1", False),
        ("/gpu:1", "/gpu:*", True),
    ],
    ids=lambda value: f"D7[{value}]",
)
def test_names_are_compatible_when_nothing_both_say_differs(a: str, b: str, compatible: bool) -> None:
    assert ds.are_compatible_dev_names(a, b) is compatible
    assert ds.are_compatible_dev_names(b, a) is compatible


@pytest.mark.parametrize(
    ("pattern", "complete"),
    [
        ("/job:*", True),
        ("/job:*/replica:*", True),
        ("/job:*/task:*", True),
        ("/job:*/replica:*/task:*", True),
        ("/job:*/replica:*/gpu:*", True),
        (A, True),
        ("/cpu:*", False),
        ("/job:foo", False),
        ("/gpu:2", False),
    ],
    ids=lambda value: f"D8[{value}]",
)
def test_a_pattern_is_compared_with_a_complete_name(pattern: str, complete: bool) -> None:
    assert ds.is_complete_specification(pattern, A) is complete


def test_a_partial_name_is_never_a_complete_specification_d8() -> None:
    assert not ds.is_complete_specification("/job:*", "/job:work/replica:1/task:2")


@pytest.mark.parametrize(
    ("less", "more", "expected"),
    [
        ("/job:*", A, True),
        ("/job:*", "/replica:1", True),
        ("/job:*/replica:*", A, True),
        ("/job:work/replica:1/gpu:3", A, True),
        ("/task:2", "/job:*/replica:1/task:2/gpu:3", True),
        ("/gpu:*", "/job:worker/replica:1/task:2/gpu:3", True),
        ("/job:worker/replica:1/task:2/gpu:3", "/gpu:*", False),
        ("/cpu:*", "/job:*/replica:1/task:2", False),
        ("/gpu:2", "/job:worker/replica:1/task:2/gpu:1", False),
        ("/job:work/replica:0/task:2", "/job:work/replica:*/task:2/gpu:3", False),
    ],
    ids=lambda value: f"D9[{value}]",
)
def test_a_specification_says_nothing_the_other_does_not(less: str, more: str, expected: bool) -> None:
    assert ds.is_specification(less, more) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/job:foo/cpu:1/task:2/replica:1", ("/job:foo/replica:1/task:2", "CPU:1")),
        ("/gpu:3", ("", "GPU:3")),
        ("/job:foo/gpu:*", ("/job:foo", "GPU:*")),
    ],
    ids=lambda value: f"D10[{value}]" if isinstance(value, str) else "",
)
def test_a_name_splits_into_address_space_and_device(name: str, expected: tuple[str, str]) -> None:
    assert ds.split_device_name(name) == expected


@pytest.mark.parametrize("name", ["/job:foo/task:2/replica:1", "gpu:3", ""], ids=lambda name: f"D10[{name}]")
def test_a_name_without_a_device_part_does_not_split(name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        ds.split_device_name(name)


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        ("", "", ""),
        ("", "/job:foo", "/job:foo"),
        ("", "/replica:2", "/replica:2"),
        ("", "/task:7", "/task:7"),
        ("", "/device:GPU:1", "/device:GPU:1"),
        ("/job:foo", "/task:7", "/job:foo/task:7"),
        ("/job:foo", "/gpu:1", "/job:foo/gpu:1"),
        ("/job:foo/replica:0", "/job:foo/task:1", "/job:foo/replica:0/task:1"),
        ("/gpu:1", "/gpu:*", "/gpu:1"),
    ],
    ids=lambda value: f"D11[{value}]",
)
@pytest.mark.parametrize("allow_soft", [False, True], ids=["strict", "soft"])
def test_merging_takes_what_either_says(a: str, b: str, merged: str, allow_soft: bool) -> None:
    assert DeviceSpec.parse(ds.merge_dev_names(a, b, allow_soft)) == DeviceSpec.parse(merged)
    assert DeviceSpec.parse(ds.merge_dev_names(b, a, allow_soft)) == DeviceSpec.parse(merged)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("/job:foo", "/job:bar", "Cannot merge devices with incompatible jobs: '/job:foo' and '/job:bar'"),
        ("/replica:0", "/replica:1", "Cannot merge devices with incompatible replicas: '/replica:0' and '/replica:1'"),
        ("/task:0", "/task:1", "Cannot merge devices with incompatible tasks: '/task:0' and '/task:1'"),
        ("/gpu:*", "/cpu:*", "Cannot merge devices with incompatible types: '/device:GPU:*' and '/device:CPU:*'"),
        ("/gpu:0", "/gpu:1", "Cannot merge devices with incompatible ids: '/device:GPU:0' and '/device:GPU:1'"),
    ],
    ids=lambda value: f"D11[{value}]",
)
def test_merging_refuses_what_differs(a: str, b: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ds.merge_dev_names(a, b)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        ("/gpu:1", "/gpu:2", "/gpu:*"),
        ("/cpu:*", "/gpu:1", ""),
        ("/job:foo/cpu:1", "/task:2/gpu:1", "/job:foo/task:2"),
    ],
    ids=lambda value: f"D12[{value}]",
)
def test_soft_merging_clears_what_clashes_in_the_device(a: str, b: str, merged: str) -> None:
    assert DeviceSpec.parse(ds.merge_dev_names(a, b, allow_soft_placement=True)) == DeviceSpec.parse(merged)
    assert DeviceSpec.parse(ds.merge_dev_names(b, a, allow_soft_placement=True)) == DeviceSpec.parse(merged)


@pytest.mark.parametrize(
    ("target", "other", "merged"),
    [
        ("", "", ""),
        ("/device:GPU:1", "/gpu:*", "/device:GPU:1"),
        ("/gpu:0", "/cpu:1", "/cpu:1"),
        ("/gpu:0", "/gpu:1", "/gpu:1"),
        ("/gpu:1", "/cpu:*", "/cpu:1"),
        ("/job:foo/CPU:*", "/device:GPU:1", "/job:foo/GPU:1"),
        ("/cpu:*", "/task:0/device:GPU:1", "/task:0/GPU:1"),
    ],
    ids=lambda value: f"D13[{value}]",
)
def test_overriding_lets_the_other_device_win(target: str, other: str, merged: str) -> None:
    assert DeviceSpec.parse(ds.merge_override_dev_names(target, other)) == DeviceSpec.parse(merged)


MergeNames = Callable[[str, str], str]


@pytest.mark.parametrize(
    "merge",
    [ds.merge_override_dev_names, lambda a, b: ds.merge_dev_names(a, b, allow_soft_placement=True)],
    ids=["D13-override", "D12-soft"],
)
@pytest.mark.parametrize(
    ("a", "b", "what"), [("/job:foo", "/job:bar", "jobs"), ("/replica:0", "/replica:1", "replicas"), ("/task:0", "/task:1", "tasks")]
)
def test_address_spaces_that_differ_never_merge(merge: MergeNames, a: str, b: str, what: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"incompatible {what}"):
        merge(a, b)


@pytest.mark.parametrize(
    ("target", "other", "merged"),
    [
        ("", "", ""),
        ("", "/job:foo", "/job:foo"),
        ("/job:foo", "", "/job:foo"),
        ("/job:foo", "/job:bar", "/job:foo"),
        ("/job:bar", "/job:foo", "/job:bar"),
        ("/job:foo/device:GPU", "/job:bar", "/job:foo/device:GPU"),
        ("/job:bar", "/job:foo/device:GPU", "/job:bar/device:GPU"),
        ("/cpu:*", "/gpu:3", "/cpu:3"),
    ],
    ids=lambda value: f"D14[{value}]",
)
def test_merging_unset_parts_never_fails_and_changes_nothing_set(target: str, other: str, merged: str) -> None:
    assert DeviceSpec.parse(ds.merge_unset_dev_names(target, other)) == DeviceSpec.parse(merged)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "/job:foo/replica:10/task:0/device:GPU:1",
            ["/job:foo/replica:10/task:0/device:GPU:1", "/job:foo/replica:10/task:0/gpu:1"],
        ),
        ("/job:foo/replica:10/task:0/device:GPU:*", []),
        ("/job:foo/device:GPU:1", []),
        ("", []),
    ],
    ids=lambda value: f"D15[{value}]" if isinstance(value, str) else "",
)
def test_a_complete_name_has_a_full_and_a_short_form(name: str, expected: list[str]) -> None:
    assert ds.get_names_for_device_mappings(name) == expected


def test_a_device_has_two_local_forms_d15() -> None:
    assert ds.get_local_names_for_device_mappings("/job:foo/gpu:1") == ["/device:GPU:1", "GPU:1"]
    assert ds.get_local_names_for_device_mappings("/job:foo/gpu:*") == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/job:foo/replica:10/task:0/device:CPU:1", "/job:foo/replica:10/task:0/device:CPU:1"),
        ("/job:foo/task:0/replica:10/device:CPU:1", "/job:foo/replica:10/task:0/device:CPU:1"),
        ("/job:foo/task:0/replica:10/cpu:1", "/job:foo/replica:10/task:0/device:CPU:1"),
        ("/device:CPU:0", "/job:foo/replica:10/task:0/device:CPU:0"),
        ("CPU:0", "/job:foo/replica:10/task:0/device:CPU:0"),
        ("/task:7", "/job:foo/replica:10/task:7/device:CPU:0"),
    ],
    ids=lambda value: f"D16[{value}]",
)
def test_a_canonical_name_takes_missing_parts_from_the_basename(name: str, expected: str) -> None:
    assert ds.canonicalize_device_name(name, BASE) == expected


@pytest.mark.parametrize(
    ("name", "basename"),
    [
        ("/job:foo/task:0/replica/cpu:1", BASE),
        ("/job:foo/task:0/replica:10/cpu:", BASE),
        ("CPU:0", "/job:foo/replica:10/device:CPU:0"),
        ("CPU:0", "/job:foo/task:0/replica/cpu:1"),
        ("CPU:0", "/job:foo/task:0/replica:10/cpu:*"),
    ],
    ids=lambda value: f"D16[{value}]",
)
def test_no_canonical_name_comes_from_what_does_not_parse_or_a_partial_basename(name: str, basename: str) -> None:
    with pytest.raises(InvalidArgumentError):
        ds.canonicalize_device_name(name, basename)


def test_an_error_quotes_where_the_name_stopped_making_sense() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'/job:foo/bar:3' at '/bar:3'"):
        ds.parse_full_name("/job:foo/bar:3")
