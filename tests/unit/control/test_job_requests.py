"""A request on a command line is plain while it is short enough to read, and packed when it is long."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.job_requests import LONGEST_BYTES, as_argument, from_argument
from kafka_rescale.core.snapshots.request import StoreRequest
from kafka_rescale.spark.jobs.arguments import parse

NAMED = ["--application", "a", "--run", "r", "--attempt", "1", "--request"]


def request(value: str) -> StoreRequest:
    return StoreRequest(name="rates", store_type="key-value", value=value)


def test_a_short_one_can_be_read() -> None:
    assert as_argument(request("Zürich")) == request("Zürich").model_dump_json()
    assert from_argument(as_argument(request("Zürich"))) == request("Zürich").model_dump_json()


def test_a_long_one_reaches_a_process_and_is_the_same() -> None:
    wanted = request("ü schema " * 20_000)
    argument = as_argument(wanted)
    assert len(argument) <= LONGEST_BYTES
    echo = [sys.executable, "-c", "import sys; sys.stdout.write(sys.argv[1])", argument]
    arrived = subprocess.run(echo, capture_output=True, text=True, check=True).stdout
    assert parse("job", ["request"], [*NAMED, arrived]).request == wanted.model_dump_json()


def test_as_it_is_no_process_would_start() -> None:
    with pytest.raises(OSError, match="too long"):
        subprocess.run([sys.executable, "-c", "", request("ü schema " * 20_000).model_dump_json()], check=False)


def test_what_can_not_be_packed_is_refused() -> None:
    noise = random.Random(1).randbytes(200_000).hex()
    with pytest.raises(InvalidInput, match="bytes after compression"):
        as_argument(request(noise))


@pytest.mark.parametrize("damaged", ["zlib:AAAA", "zlib:A"])
def test_a_damaged_one_is_no_request(damaged: str) -> None:
    with pytest.raises(SystemExit):
        parse("job", ["request"], [*NAMED, damaged])
