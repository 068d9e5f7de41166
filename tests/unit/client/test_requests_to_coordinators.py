"""librdkafka may kill the process when it asks the coordinator of a group. So the product does not ask by it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka.admin import AdminClient

PRODUCT = Path(__file__).parents[3] / "plugins"
TO_COORDINATORS = {
    "alter_consumer_group_offsets",
    "delete_consumer_group_offsets",
    "delete_consumer_groups",
    "describe_consumer_groups",
    "list_consumer_group_offsets",
}


def named(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in TO_COORDINATORS:
            yield node.attr


def test_a_call_is_found() -> None:
    assert list(named("found = client.describe_consumer_groups([group])")) == ["describe_consumer_groups"]


def test_the_product_sends_none() -> None:
    found = {str(path): list(named(path.read_text())) for path in PRODUCT.rglob("*.py")}
    assert not {path: calls for path, calls in found.items() if calls}


def test_the_client_library_has_no_other_call_for_groups() -> None:
    # Brokers answer a list of groups themselves, without a coordinator.
    about_groups = {name for name in dir(AdminClient) if "group" in name and not name.startswith("_")}
    assert about_groups - TO_COORDINATORS <= {"list_consumer_groups", "list_groups"}
