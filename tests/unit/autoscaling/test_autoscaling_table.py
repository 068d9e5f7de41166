"""The page about KIP-878 and its tests: every sentence of the KIP has an answer, and the example can be used."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from kafka_rescale.core.application.autoscaling import Bounds
from kafka_rescale.operations.application.load import load_application

from tests.support.application_files import write_application
from tests.support.house.documents import ROOT, named_tests, rows

TEXT = (ROOT / "docs" / "autoscaling.md").read_text()
ROWS = rows(TEXT, "KIP-878 | | shown by")
ANSWERS = {"shown", "other", "open"}


def test_every_sentence_has_a_test_a_reason_or_is_said_not_to_be_shown() -> None:
    assert len(ROWS) > 40
    for sentence, answer, shown, _ in ROWS:
        assert answer in ANSWERS, sentence
        if answer == "open":
            assert shown == "not shown yet", sentence
        elif answer != "other":
            assert named_tests(shown), sentence


def test_the_example_is_a_valid_application_file(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.+?)```", TEXT, re.DOTALL)
    application = load_application(write_application(tmp_path, **yaml.safe_load(example)))
    assert application.autoscaling_enabled


def test_every_bound_is_explained() -> None:
    explained = {name.strip("`") for row in rows(TEXT, "field | what it does") for name in row[:1]}
    assert explained | {"time_zone"} == set(Bounds.model_fields)
