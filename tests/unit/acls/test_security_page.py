"""The tables of permissions in docs/security.md are those that ``acls`` prints and ``preflight`` asks for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.acls.acls import Resource
from kafka_rescale.core.acls.needed import needed_acls
from kafka_rescale.core.acls.pipeline import pipeline_acls
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.roles import Role
from kafka_rescale.operations.application.load import load_pipeline_application, topology_of

from testbed.expansion import ROOT
from tests.support.secured import SHOP
from tests.support.words_pipeline import words, write_pipeline

DECLARED: dict[str, Any] = {
    **SHOP,
    "inputs": [
        SHOP["inputs"][0],
        {**SHOP["inputs"][1], "producers": {"application": "crm"}},
        SHOP["inputs"][2],
        {"topic": "rates", "policy": "fixed"},
    ],
    "outputs": [*SHOP["outputs"], {"topic": "notes"}],
    "subtopologies": [
        *SHOP["subtopologies"],
        {"sources": ["rates"], "sinks": ["notes"]},
    ],
}
ROWS: dict[str, tuple[Resource, str]] = {
    "topic `_kafka_rescale`": (Resource.TOPIC, "_kafka_rescale"),
    "topics `shop-`…": (Resource.TOPIC, "shop-per-customer-changelog"),
    "input, `unkeyed`": (Resource.TOPIC, "orders"),
    "input, `paused`": (Resource.TOPIC, "customers"),
    "input, `repartitioned`": (Resource.TOPIC, "payments"),
    "its successors, `<topic>-p`…": (Resource.TOPIC, "payments-p8"),
    "input, `fixed`": (Resource.TOPIC, "rates"),
    "output": (Resource.TOPIC, "notes"),
    "groups `shop` and `shop-`…": (Resource.GROUP, "shop-g2"),
    "groups `kafka-rescale-`…": (Resource.GROUP, "kafka-rescale-reader"),
    "groups of a neighbour": (Resource.GROUP, "crm-g2"),
    "its topics `crm-`…": (Resource.TOPIC, "crm-x-repartition"),
    "transactional id `kafka-rescale-shop`": (Resource.TRANSACTIONAL_ID, "kafka-rescale-shop"),
    "transactional ids `kafka-rescale-shop-`…": (Resource.TRANSACTIONAL_ID, "kafka-rescale-shop-restore"),
    "transactional ids `kafka-rescale-shop/result/`…": (
        Resource.TRANSACTIONAL_ID,
        "kafka-rescale-shop/result/watch",
    ),
    "transactional id `kafka-rescale-shop/result/prove`": (
        Resource.TRANSACTIONAL_ID,
        "kafka-rescale-shop/result/prove",
    ),
    "transactional id `kafka-rescale-shop/report`": (Resource.TRANSACTIONAL_ID, "kafka-rescale-shop/report"),
}
PIPELINE_ROWS: dict[str, tuple[Resource, str]] = {
    "topic `_kafka_rescale`": (Resource.TOPIC, "_kafka_rescale"),
    "topics `words-`…": (Resource.TOPIC, "words-counts-changelog"),
    "input": (Resource.TOPIC, "lines"),
    "output, also of backfills": (Resource.TOPIC, "counted"),
    "groups `words` and `words-`…": (Resource.GROUP, "words"),
    "groups `kafka-rescale-`…": (Resource.GROUP, "kafka-rescale-reader"),
    "transactional ids `words-`…": (Resource.TRANSACTIONAL_ID, "words-1_0"),
    "transactional id `kafka-rescale-words`": (Resource.TRANSACTIONAL_ID, "kafka-rescale-words"),
    "transactional ids `kafka-rescale-words/result/`…": (
        Resource.TRANSACTIONAL_ID,
        "kafka-rescale-words/result/",
    ),
}
HEADS = {"| resource | plan | copy | admin | verify |": ROWS, "| resource | plan (`status`) |": PIPELINE_ROWS}


def plain(cell: str) -> str:
    """Return a cell without its parentheses, which are about other cases."""
    return re.sub(r" \([^)]*(\([^)]*\))?[^)]*\)", "", cell).strip()


def documented(head: str) -> dict[str, list[set[str]]]:
    """Return the rows of a table, with the operations of the roles plan, copy, admin and verify."""
    text = (ROOT / "docs" / "security.md").read_text()
    lines = text[text.index(head) :].split("\n\n")[0].splitlines()[2:]
    rows = [[plain(cell) for cell in line.split("|")[1:-1]] for line in lines]
    return {name: [{o for o in cell.split(", ") if o} for cell in cells] for name, *cells in rows}


@pytest.mark.parametrize("head", HEADS)
def test_no_row_is_unknown(head: str) -> None:
    assert list(documented(head)) == list(HEADS[head])


@pytest.mark.parametrize(("head", "row"), [(head, row) for head, rows in HEADS.items() for row in rows])
def test_a_row_is_what_is_needed(head: str, row: str, tmp_path: Path) -> None:
    application = Application.model_validate(DECLARED)
    acls = needed_acls(application, topology_of(application))
    if HEADS[head] is PIPELINE_ROWS:
        acls = pipeline_acls(load_pipeline_application(write_pipeline(tmp_path)), words().topology)
    resource, name = HEADS[head][row]
    said = documented(head)[row]
    roles = (Role.PLAN, Role.COPY, Role.ADMIN, Role.VERIFY)[: len(said)]
    assert said == [
        {a.operation.value for a in acls if a.role is role and a.pattern.covers(resource, name)} for role in roles
    ]
