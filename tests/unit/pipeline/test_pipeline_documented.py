"""The pipeline in the documentation can be built, and its description is the documented one."""

from __future__ import annotations

import re
from typing import Any

from kafka_rescale.core.pipeline.builder import StreamsBuilder
from kafka_rescale.core.pipeline.grouped import KGroupedStream
from kafka_rescale.core.pipeline.streams import KStream
from kafka_rescale.core.pipeline.tables import KTable

from tests.support.house.documents import ROOT, collected, missing, named_tests

TEXT = (ROOT / "docs" / "pipelines.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_documented_pipeline_describes_itself_as_documented() -> None:
    names: dict[str, Any] = {}
    exec(compile(block("python"), "pipelines.md", "exec"), names)
    assert names["pipeline"].describe() == block("text")


def test_the_tests_that_are_named_exist() -> None:
    names = named_tests(TEXT.partition("## How they are compared")[2])
    assert len(names) > 4
    assert missing(names, collected(names)) == []


def test_every_operation_is_documented() -> None:
    operations = {
        name
        for words in (StreamsBuilder, KStream, KTable, KGroupedStream)
        for name, value in vars(words).items()
        if callable(value) and not name.startswith("_") and name != "add_aggregation"
    }
    assert {name for name in operations if f"`{name}" not in TEXT} == set()
