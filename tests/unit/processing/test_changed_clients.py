"""Commands about clients: those that are absent, and those that are new in the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.assignment.thread_states import State
from kafka_rescale.core.control.processing import ClientRecord, Processing
from kafka_rescale.core.control.state import ControlState
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.operations.application.load import load_pipeline_application
from kafka_rescale.operations.processing import clients, stream_threads

from tests.support.words_pipeline import write_pipeline

CONNECTION = KafkaConnection({"bootstrap.servers": "kafka:9092"})
GONE = "/west/words is no longer there"
EAST = ClientRecord(client_id="east", state=State.RUNNING, state_dir="/east")
WEST = ClientRecord(client_id="west", state_dir="/west", absent=GONE)
Known = Callable[[Processing], list[Processing]]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    """Puts a record into the control topic. Returns the list of what is written there."""

    def put(processing: Processing) -> list[Processing]:
        written: list[Processing] = []

        class Topic:
            def __init__(self, *_: Any) -> None: ...

            def update(self, change: Any) -> None:
                written.extend(change(ControlState(processing=processing)).values())

        for module in (clients, stream_threads):
            monkeypatch.setattr(module, "ControlTopic", Topic)
        return written

    return put


@pytest.fixture
def application(tmp_path: Path) -> PipelineApplication:
    """A pipeline of three clients."""
    declared = [{"client.id": name, "state.dir": f"/{name}"} for name in ("east", "west", "north")]
    changes: dict[str, Any] = {"state.dir": None, "clients": declared}
    return load_pipeline_application(write_pipeline(tmp_path, **changes))


def test_an_absent_client_is_given_up(known: Known, application: PipelineApplication) -> None:
    written = known(Processing(clients=(EAST, WEST)))
    assert clients.remove_clients(application, CONNECTION, "west") == ["west"]
    assert written[0].the_client("west").state is State.NOT_RUNNING


def test_a_client_that_is_new_in_the_file_is_known(known: Known, application: PipelineApplication) -> None:
    written = known(Processing(clients=(EAST, WEST)))
    declared = application.client_ids
    assert stream_threads.add_stream_thread("words", CONNECTION, "north", declared=declared) is None
    assert stream_threads.remove_stream_thread("words", CONNECTION, client_id="north", declared=declared) is None
    assert written == [], "it starts with as many threads as the file gives it"
    with pytest.raises(InvalidInput, match="found no client 'south'; expected one of east, west, north"):
        stream_threads.add_stream_thread("words", CONNECTION, "south", declared=declared)
    with pytest.raises(InvalidInput, match="found 3 clients, and no name"):
        stream_threads.add_stream_thread("words", CONNECTION, declared=declared)
    assert clients.remove_clients(application, CONNECTION, "north") == ["north"]
    assert written[0].the_client("north").state is State.NOT_RUNNING


def test_without_a_name_no_absent_client_begins_anew(known: Known, application: PipelineApplication) -> None:
    ended = EAST.model_copy(update={"state": State.ERROR})
    written = known(Processing(clients=(ended, WEST)))
    with pytest.raises(Refused) as refused:
        clients.start_clients(application, CONNECTION)
    assert str(refused.value) == (
        f"clients that shall start: found west, which is absent ({GONE}); expected a name, because an absent "
        "client would begin in a new directory. Mount its state.dir, and it takes part by itself. Or name each "
        "client that shall start, this one only if its directory is lost for good."
    )
    assert written == []
    assert clients.start_clients(application, CONNECTION, "east") == ["east"]
    assert clients.start_clients(application, CONNECTION, "west") == ["west"]
    assert written[-1].the_client("west").state_dir == "", "it makes a new directory"


def test_without_a_name_all_that_have_ended_start_again(known: Known, application: PipelineApplication) -> None:
    both = (each.model_copy(update={"state": State.ERROR, "absent": ""}) for each in (EAST, WEST))
    written = known(Processing(clients=tuple(both)))
    assert clients.start_clients(application, CONNECTION) == ["east", "west"]
    assert [client.client_id for client in written[0].clients] == ["east", "west"], "the new one starts by itself"
