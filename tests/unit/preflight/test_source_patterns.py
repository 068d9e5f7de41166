"""A source that reads a pattern: the file lists its topics, and preflight compares them with the cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.errors import InvalidApplication
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.patterns import matching
from kafka_rescale.operations.application.load import load_application, topology_of

from tests.support.situations import found, journal, situation
from tests.support.small_application import declared, topology_text, write

NAME = "shop"
PATTERN = "shop-custom(er|ar)s"
LISTED = {PATTERN: ["shop-customers"]}
TEXT = topology_text(NAME).replace("[shop-customers]", PATTERN)


def of_pattern(directory: Path, **changes: Any) -> Path:
    return write(directory, NAME, **{"topology": TEXT, "source_patterns": LISTED, **changes})


def patterned(
    directory: Path, *visible: str, patterns: dict[str, list[str]] | None = None, **changes: Any
) -> Situation:
    """A sound application that reads its customers by a pattern, on a cluster with these additional topics."""
    given = situation(visible=frozenset({"shop-orders", "shop-customers", *visible}), **changes)
    application = load_application(of_pattern(directory))
    if patterns is not None:
        application = application.model_copy(update={"source_patterns": patterns})
    return replace(given, application=application)


def test_the_listed_topics_stand_for_the_pattern(tmp_path: Path) -> None:
    application = load_application(of_pattern(tmp_path))
    assert topology_of(application) == topology_of(load_application(write(tmp_path, NAME)))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"source_patterns": {}},
            "agree to those of today: `source_patterns: {'shop-custom(er|ar)s': [TOPIC, …]}`",
        ),
        ({"source_patterns": {"another-.*": ["a"]}}, "a source that reads the pattern shop-custom"),
        (
            {"source_patterns": {PATTERN: ["shop-customers", "other"]}},
            "found other, which the pattern shop-custom",
        ),
        (
            {"source_patterns": {**LISTED, "shop-cu.*": ["shop-cups"]}},
            "found the input topic shop-cups, which the",
        ),
        ({"source_patterns": {**LISTED, "shop-(": []}}, "expected a regular expression that Java and Python read"),
        (
            {"source_patterns": {PATTERN: ["shop-customers", "shop-customars"]}},
            "no declaration of input topic shop-customars",
        ),
    ],
    ids=["no list", "another pattern's list", "no match", "not read", "no expression", "not declared"],
)
def test_a_list_that_does_not_agree_with_the_rest_is_refused(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidApplication) as refused:
        load_application(of_pattern(tmp_path, **changes))
    assert told in str(refused.value)


def test_a_topic_of_a_pattern_can_not_be_replaced_by_a_successor(tmp_path: Path) -> None:
    orders, customers = declared(NAME)["inputs"]
    inputs = [orders, {**customers, "policy": "repartitioned"}]
    with pytest.raises(InvalidApplication, match="the program reads what its pattern matches"):
        load_application(of_pattern(tmp_path, inputs=inputs))


def test_whole_names_are_matched_as_in_java_and_brokers_own_topics_never() -> None:
    topics = {"a-1", "xa-1", "a-12", "__consumer_offsets"}
    assert matching("a-[0-9]", topics) == {"a-1"}
    assert matching(".*", topics) == topics - {"__consumer_offsets"}


def test_what_is_listed_and_nothing_else_matches(tmp_path: Path) -> None:
    assert found(patterned(tmp_path, "shop-other")) == []


@pytest.mark.parametrize("phase", [None, Phase.WARMING, Phase.CAUGHT_UP])
def test_another_topic_that_matches_is_named_with_the_list_to_write(tmp_path: Path, phase: Phase | None) -> None:
    control = {} if phase is None else {"control": journal(8, phase)}
    told = (
        "source pattern shop-custom(er|ar)s: found shop-customars, which matches it too; expected the topics that "
        "`source_patterns:` lists: shop-customers. If the application shall read what matches today, write "
        "`source_patterns: {'shop-custom(er|ar)s': [shop-customars, shop-customers]}`, and declare each topic in "
        "`inputs:`. Otherwise delete the topics, or narrow the pattern in the program."
    )
    assert told in found(patterned(tmp_path, "shop-customars", **control))


def test_behind_the_promotion_an_expansion_goes_on(tmp_path: Path) -> None:
    given = patterned(tmp_path, "shop-customars", control=journal(8, Phase.PROMOTED))
    assert not [finding for finding in found(given) if "pattern" in finding]


def test_a_pattern_that_would_match_the_next_generations_topics_is_refused(tmp_path: Path) -> None:
    wide = {"shop-(customers|g2-.*)": ["shop-customers"]}
    (told,) = found(patterned(tmp_path, patterns=wide))
    assert "a match for shop-g2-by-customer-repartition, shop-g2-customers-changelog" in told
    assert "the running generation would read the next one's records" in told
