"""With at-least-once, an application that dies of its input's growth counts again only what it had not committed.

The test predicts the excess record by record, from the content of the application's topics after its death.
Nothing else has run by then.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Message
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.reading.range_reader import read_ranges

from testbed.expansion import Expansion
from testbed.flights_stack import FlightsStack
from testbed.outputs import read_latest
from testbed.processes import wait_until
from tests.support.live_expansion import live_application

pytestmark = [pytest.mark.integration, pytest.mark.slow]
FLIGHTS, BY_AIRCRAFT = "flights", "flights-by-aircraft-repartition"
SOON_AWARE = "metadata.max.age.ms=3000\nstatestore.cache.max.bytes=0\n"
"""It commits every 30 s, the default of at-least-once. It notices a growth within seconds instead of minutes."""
BLUE, GREEN = "flights", "flights-g2"
STOPPED = 3


def test_what_was_not_committed_is_counted_again_and_nothing_else(tmp_path: Path) -> None:
    config = tmp_path / "soon-aware.properties"
    config.write_text(SOON_AWARE)
    with live_application(tmp_path, rate=20, settings={"FLIGHTS_CONFIG": str(config)}) as (stack, expansion):
        admin = ClusterAdmin(expansion.connection)
        wait_until(lambda: BY_AIRCRAFT in admin.committed(BLUE), timeout=120, what="the first commit")
        admin.grow_topic(FLIGHTS, 8)
        wait_until(
            lambda: stack.run("status") == STOPPED, timeout=300, what="the application to die of the growth"
        )
        assert not admin.describe_group(BLUE).members
        again = counted_again(stack, expansion)
        expansion.run(8)
        stack.finish_replay()
        wait_until(
            lambda: totals(stack, GREEN) == sent(expansion) + again,
            timeout=240,
            what="the totals of all flights sent, and of those counted again",
        )
        print(f"RESULT {sum(again.values())} flights of {len(again)} aircraft were counted again, as predicted")
        assert again, "nothing was open when the application died: the test has shown nothing"


def counted_again(stack: FlightsStack, expansion: Expansion) -> Counter[str]:
    """Predict from the logs of the dead application how many flights of each aircraft will be counted twice.

    These flights are already counted, or still in the repartition topic, and the input's offsets say to read them
    again.
    """
    admin = ClusterAdmin(expansion.connection)
    committed = admin.committed(BLUE)
    open_ = {
        p: (committed[BY_AIRCRAFT].get(p, 0), end)
        for p, end in admin.end_offsets([BY_AIRCRAFT])[BY_AIRCRAFT].items()
    }
    left = Counter(str(record.key(), "utf-8") for record in read_ranges(expansion.connection, BY_AIRCRAFT, open_))
    done = {p: (0, offset) for p, offset in committed.get(FLIGHTS, {}).items()}
    read = by_aircraft(read_ranges(expansion.connection, FLIGHTS, done))
    excess = totals(stack, BLUE)
    excess.update(left)
    excess.subtract(read)
    assert min(excess.values(), default=0) >= 0, "a flight was committed and not counted"
    return +excess


def sent(expansion: Expansion) -> Counter[str]:
    """Return the number of flights in the input, by aircraft."""
    ends = ClusterAdmin(expansion.connection).end_offsets([FLIGHTS])[FLIGHTS]
    return by_aircraft(read_ranges(expansion.connection, FLIGHTS, {p: (0, end) for p, end in ends.items()}))


def by_aircraft(flights: Iterable[Message]) -> Counter[str]:
    """Return how many flights each aircraft has. The application drops flights of unknown aircraft."""
    found = (json.loads(flight.value()).get("tailnum") for flight in flights)
    return Counter(str(name) for name in found if name is not None)


def totals(stack: FlightsStack, application_id: str) -> Counter[str]:
    """Return the number of flights that an application has counted, by aircraft."""
    latest = read_latest(stack.client, f"{application_id}-aircraft-totals-changelog")
    return Counter({str(k, "utf-8"): json.loads(v)["flights"] for k, v in latest.items() if v is not None})
