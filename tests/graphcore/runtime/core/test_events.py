"""Events of a run as frozen records."""

from __future__ import annotations

import threading

import msgspec
import pytest

from graphcore.runtime import Event, Recorder


def test_events_come_back_in_the_order_they_were_recorded_in_with_what_was_said_of_them() -> None:
    recorder = Recorder()
    recorder.record("scheduled", "a")
    recorder.record("end", "a", bytes=8, device="/cpu:0", frame="loop", iteration=3)
    first, second = recorder.events
    assert (first.kind, first.node, first.bytes, first.device, first.frame, first.iteration) == ("scheduled", "a", 0, "", "", 0)
    assert (second.kind, second.bytes, second.device, second.frame, second.iteration) == ("end", 8, "/cpu:0", "loop", 3)
    assert first.ns <= second.ns
    assert {first.thread, second.thread} == {threading.get_ident()}


def test_an_event_cannot_be_changed_and_goes_through_json() -> None:
    event = Event("sent", "x", 12, bytes=4)
    with pytest.raises(AttributeError):
        event.ns = 0  # type: ignore[misc]  # the assignment under test
    assert msgspec.json.decode(msgspec.json.encode(event), type=Event) == event


def test_recording_from_several_threads_loses_nothing() -> None:
    recorder = Recorder()

    def record() -> None:
        for _ in range(500):
            recorder.record("start", "n")

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(recorder) == len(recorder.events) == 2000
    recorder.clear()
    assert recorder.events == ()
