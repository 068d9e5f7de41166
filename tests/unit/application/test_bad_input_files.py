"""Mistakes in an application file give one message: file, line, what was found, what is expected, the remedy."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kafka_rescale.core.application.field_errors import mistakes_of
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.operations.application.load import load_application, topology_of
from pydantic import BaseModel, ValidationError, field_validator

from tests.support.small_application import declared, write

INPUTS = declared("shop")["inputs"]
STORES = declared("shop")["stores"]
FIELDS = sorted(field.alias or name for name, field in Application.model_fields.items())


def message_of(file: Path) -> str:
    """Return the refusal's message without the directory."""
    with pytest.raises(InvalidInput) as error:
        load_application(file)
    return str(error.value).replace(f"{file.parent}/", "")


def test_a_good_file_is_loaded(tmp_path: Path) -> None:
    loaded = load_application(write(tmp_path, "shop"))
    assert loaded.application_id == "shop"
    assert topology_of(loaded).inputs == ("shop-orders", "shop-customers")


def test_the_topology_may_be_a_file_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "shop.topology.txt").write_text(declared("shop")["topology"])
    loaded = load_application(write(tmp_path, "shop", topology="shop.topology.txt"))
    assert topology_of(loaded).stores == ("customers", "totals", "hourly", "visits")


def test_the_topology_may_be_spelled_out(tmp_path: Path) -> None:
    fields = declared("shop")
    del fields["topology"]
    fields["subtopologies"] = [
        {"sources": ["shop-orders"], "sinks": ["by-customer-repartition"]},
        {
            "sources": ["by-customer-repartition", "shop-customers"],
            "stores": ["customers", "totals", "hourly", "visits"],
            "sinks": ["shop-totals"],
        },
    ]
    file = tmp_path / "shop.yaml"
    file.write_text(str(fields))  # a Python dict of plain values is YAML, too
    assert topology_of(load_application(file)) == topology_of(load_application(write(tmp_path, "shop")))


TEXTS = {
    "malformed YAML": (
        "application_id: shop\ninputs: [a, b\npartitions: 8\n",
        "bad.yaml:3: found malformed YAML (expected ',' or ']', but got ':'); expected YAML. Look for a "
        "missing quote, bracket or space after a colon, or a tab, at or just above this line.",
    ),
    "a tab": (
        "application_id: shop\n\tpartitions: 8\n",
        "bad.yaml:2: found malformed YAML (found character '\\t' that cannot start any token); expected YAML. "
        "Look for a missing quote, bracket or space after a colon, or a tab, at or just above this line.",
    ),
    "nothing": (
        "",
        "bad.yaml:1: found no fields; expected fields such as `application_id:`. See the example in "
        "`applications/`.",
    ),
    "a list": (
        "- application_id: shop\n",
        "bad.yaml:1: found list; expected fields such as `application_id:`. See the example in `applications/`.",
    ),
    "a field twice": (
        "application_id: shop\npartitions: 8\npartitions: 4\n",
        "bad.yaml:2: partitions: found the field `partitions` a second time, in line 3; expected each field "
        "once. Delete one of the two.",
    ),
    "a day that no calendar has": (
        "application_id: shop\nsnapshots:\n  start_date: 2024-02-30\n",
        "bad.yaml:3: found '2024-02-30', which is none (day is out of range for month); expected a value of the "
        "YAML type timestamp. Correct it; a text that looks like a date or a number is put between quotes.",
    ),
    "a number without digits": (
        "application_id: shop\npartitions: 0x_\n",
        "bad.yaml:2: found '0x_', which is none (invalid literal for int() with base 16: ''); expected a value of "
        "the YAML type int. Correct it; a text that looks like a date or a number is put between quotes.",
    ),
    "a word that is no truth value": (
        "application_id: shop\nmore: !!bool foo\n",
        "bad.yaml:2: found 'foo', which is none; expected a value of the YAML type bool. Correct it; a text that "
        "looks like a date or a number is put between quotes.",
    ),
    "lists in lists in lists": (
        f"application_id: shop\npartitions: {'[' * 1_200}",
        "bad.yaml: found lists or fields that are nested too deeply to be read; expected YAML. Look for brackets "
        "that are never closed, or for spaces in front of lines that grow from line to line.",
    ),
    "octal": (
        "application_id: shop\npartitions: 012\n",
        "bad.yaml:2: partitions: found 012, which YAML reads as 10; expected a decimal number without a leading "
        "0. Write the number that is meant.",
    ),
    "sixties": (
        "application_id: shop\npartitions: 1:30\n",
        "bad.yaml:2: partitions: found 1:30, which YAML reads as 90; expected a decimal number without a leading "
        "0. Write the number that is meant.",
    ),
    "executable YAML": (
        "!!python/object/apply:os.system ['true']\n",
        "bad.yaml:1: found malformed YAML (could not determine a constructor for the tag "
        "'tag:yaml.org,2002:python/object/apply:os.system'); expected YAML. Look for a missing quote, bracket "
        "or space after a colon, or a tab, at or just above this line.",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_that_is_no_application_file(case: str, tmp_path: Path) -> None:
    text, message = TEXTS[case]
    (tmp_path / "bad.yaml").write_text(text)
    assert message_of(tmp_path / "bad.yaml") == message


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    assert message_of(tmp_path / "none.yaml") == (
        "none.yaml: found No such file or directory; expected a readable file in UTF-8. Correct the path or "
        "the file."
    )


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown field": (
        {"acceptable_recovery_lags": 5},
        "acceptable_recovery_lags: found the unknown field `acceptable_recovery_lags`; expected one of "
        f"{', '.join(FIELDS)}. Did you mean `acceptable_recovery_lag`?",
    ),
    "unknown field of an input": (
        {"inputs": [INPUTS[0], {**INPUTS[1], "partitoner": "crc32"}]},
        "inputs[1].partitoner: found the unknown field `partitoner`; expected one of isolation_level, "
        "partitioner, policy, producers, silent_seconds, successor, topic. Did you mean `partitioner`?",
    ),
    "missing field": (
        {"lifecycle": {"type": "shell", "start": "true", "stop": "true"}},
        "lifecycle: found no field `status`; expected a field `status`. Add `status:`.",
    ),
    "unknown policy": (
        {"inputs": [INPUTS[0], {**INPUTS[1], "policy": "pause"}]},
        "inputs[1].policy: found 'pause'; expected 'unkeyed', 'paused', 'repartitioned' or 'fixed'. Correct the "
        "value.",
    ),
    "unknown partitioner": (
        {"inputs": [INPUTS[0], {**INPUTS[1], "partitioner": "md5"}]},
        "inputs[1].partitioner: found 'md5'; expected one of crc32, murmur2, linear-hashing:<initial count>, "
        "module:function, static:module:function. Java producers and Kafka Streams "
        "use murmur2, as librdkafka does with partitioner=murmur2 or murmur2_random; its default, "
        "consistent_random, is crc32.",
    ),
    "unknown store type": (
        {"stores": [{**STORES[0], "type": "kv"}, *STORES[1:]]},
        "stores[0].type: found 'kv'; expected one of foreign-key-subscription, join-window, key-value, "
        "outer-join, "
        "processor, session, suppress, suppress-session, suppress-window, timestamped-key-value, "
        "timestamped-window, versioned, window. The DSL's aggregate/count/reduce without a window use "
        "timestamped-key-value.",
    ),
    "a processor's store without an extractor": (
        {"stores": [{**STORES[0], "type": "processor", "partitioning_key": ""}, *STORES[1:]]},
        "stores[0].partitioning_key: found ''; expected whole, drop-last-N, first-N (N bytes), or "
        "module:function. Say which bytes of "
        "the store's keys are the key of the records that it was made from.",
    ),
    "an extractor for a store of the DSL": (
        {"stores": [{**STORES[0], "partitioning_key": "whole"}, *STORES[1:]]},
        "stores[0].partitioning_key: found 'whole' for a store of type timestamped-key-value; expected this field "
        "with type processor only. Delete it: where timestamped-key-value stores have the partitioning key is "
        "known.",
    ),
    "a global store": (
        {"stores": [{**STORES[0], "type": "global"}, *STORES[1:]]},
        "stores[0].type: found a global store, which every instance reads from its source topic; expected a store "
        "whose changelog can be moved. Delete it from `stores:`; nothing has to be moved.",
    ),
    "unknown lifecycle": (
        {"lifecycle": {"type": "shel"}},
        "lifecycle.type: found 'shel'; expected 'shell', 'python', 'manual'. Correct the value.",
    ),
    "no number": ({"partitions": "many"}, "partitions: found 'many'; expected a whole number. Correct the value."),
    "a truth": ({"partitions": True}, "partitions: found true; expected a whole number. Correct the value."),
    "a text": ({"partitions": "12"}, "partitions: found '12'; expected a whole number. Correct the value."),
    "no schedule": (
        {"schedule": "every day"},
        "schedule: found 'every day'; expected a cron expression such as `0 3 * * sun`, or a preset such as "
        "@weekly. Correct it.",
    ),
    "zero": ({"partitions": 0}, "partitions: found 0; expected 1 or more. Correct the value."),
    "no topic's name": (
        {"application_id": "my shop"},
        "application_id: found 'my shop'; expected a text that matches ^[a-zA-Z0-9._-]{1,249}$. Correct the "
        "value.",
    ),
    "a name that Kafka has for no topic": (
        {"outputs": [{"topic": ".."}]},
        "outputs[0].topic: found '..'; expected up to 249 letters, digits, dots, underscores and hyphens, other "
        "than `.` and `..`. Correct the value.",
    ),
    "an application id that Airflow has no room for": (
        {"application_id": "x" * 241},
        f"application_id: found '{'x' * 56}...; expected at most 240 characters. Correct the value.",
    ),
    "no inputs": ({"inputs": []}, "inputs: found []; expected at least 1 entry. Correct the value."),
    **{
        f"a successor with {why}": (
            {"inputs": [INPUTS[0], {"topic": "shop-customers", "policy": "repartitioned", "successor": name}]},
            f"inputs[1].successor: found {name!r}; expected the name of a topic, with no other placeholders than "
            "{topic} and {partitions}. Correct it.",
        )
        for why, name in {
            "another placeholder": "{application}",
            "an attribute": "{topic.x}",
            "an item": "{topic[x]}",
            "a space": "my {topic}",
        }.items()
    },
    "a text of one line instead of a topology": (
        {"topology": "orders " * 50},
        "topology: found 'orders orders orders orders orders orders orders orders ...; expected a file, its path "
        "as seen from shop.yaml, or the text itself. Save what Topology#describe() prints there, or paste it "
        "after `topology: |`.",
    ),
    "no topology after its name": (
        {"topology": None},
        "topology: found nothing; expected a file with what Topology#describe() prints, or the text itself. Save "
        "what Topology#describe() prints there, or paste it after `topology: |`.",
    ),
    "a list instead of a topology": (
        {"topology": ["Sub-topology: 0"]},
        "topology: found ['Sub-topology: 0']; expected a text. Correct the value.",
    ),
    "a number where a text is needed": (
        {"spark_conf": {"spark.cores.max": 2}},
        'spark_conf.spark.cores.max: found 2; expected a text. Quote it: "2".',
    ),
    "a boolean where a text is needed": (
        {"spark_conf": {"spark.x": True}},
        "spark_conf.spark.x: found true; expected a text. Quote it.",
    ),
    "an unknown role": (
        {"kafka_conn_ids": {"copier": "kafka"}},
        "kafka_conn_ids.copier: found the field 'copier'; expected 'plan', 'copy', 'admin' or 'verify'. Correct "
        "the name.",
    ),
    "an endless number": (
        {"max_pause_seconds": float("inf")},
        "max_pause_seconds: found inf; expected a whole number. Correct the value.",
    ),
    **{
        f"a date that is {why}": (
            {"snapshots": {"location": "/data", "start_date": value}},
            f"snapshots.start_date: found {shown}; expected a date such as 2026-01-31. Correct the value.",
        )
        for why, value, shown in (
            ("a word", "yesterday", "'yesterday'"),
            ("no day", "2026-02-30", "'2026-02-30'"),
            ("a list", [1], "[1]"),
            ("a time", datetime(2026, 1, 31, 12), "2026-01-31 12:00:00"),
        )
    },
    "a pause that nobody is told of": (
        {"pause_alert_seconds": 20},
        "pause_alert_seconds: found no notifier of event long_pause; expected one for `pause_alert_seconds:`. Add "
        "it to `notifications:`, or delete the field.",
    ),
    "missing topology file": (
        {"topology": "shop.topology.txt"},
        "topology: found 'shop.topology.txt', looked for as shop.topology.txt; expected a file, its path as "
        "seen from shop.yaml, or the text itself. Save what Topology#describe() prints there, or paste it after "
        "`topology: |`.",
    ),
}


@pytest.mark.parametrize("case", FIELDS)
def test_a_field_that_is_wrong(case: str, tmp_path: Path) -> None:
    changes, message = FIELDS[case]
    file = write(tmp_path, "shop", **changes)
    where, _, what = message_of(file).partition(": ")
    assert what.replace(str(tmp_path), "DIRECTORY") == message
    line = file.read_text().splitlines()[int(where.removeprefix("shop.yaml:")) - 1]
    field = message.partition(":")[0].split(".")[-1].partition("[")[0]
    assert f"{field}:" in line


def test_a_value_that_stands_within_itself_is_no_endless_loop(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("application_id: shop\ntags: &all [*all]\n")
    assert "bad.yaml:2: tags[0]: found [[...]]; expected a text" in message_of(tmp_path / "bad.yaml")


@pytest.mark.parametrize(("word", "read"), [("on", "true"), ("No", "false")])
def test_a_field_that_yaml_reads_as_a_boolean_is_told_at_its_line(word: str, read: str, tmp_path: Path) -> None:
    file = write(tmp_path, "shop")
    file.write_text(f"{file.read_text()}{word}: 3\n")
    line = len(file.read_text().splitlines())
    assert message_of(file) == (
        f"shop.yaml:{line}: {read}: found the field {read}: YAML reads on, off, yes and no as booleans; expected "
        "a field name. Quote it."
    )


@pytest.mark.parametrize(("name", "told"), [(1, "1"), (None, "null")])
def test_a_field_whose_name_is_no_text(name: object, told: str, tmp_path: Path) -> None:
    message = message_of(write(tmp_path, "shop", spark_conf={name: "2"}))
    assert f"found the field {told}; expected a text. Quote it." in message


def test_an_error_of_a_kind_without_words_of_its_own_has_neutral_ones() -> None:
    class Model(BaseModel):
        uuid: UUID

        @field_validator("uuid", mode="before")
        @classmethod
        def _of_a_library(cls, value: str) -> str:
            int(value)
            return value

    told = []
    for value in ("1", "x"):
        with pytest.raises(ValidationError) as error:
            Model.model_validate({"uuid": value})
        told += [str(mistake.complaint) for mistake in mistakes_of(error.value, Model)]
    rest = "; expected a value that this field takes. See `docs/reference.md`."
    assert told == [f"uuid: found '1'{rest}", f"uuid: found invalid literal for int() with base 10: 'x'{rest}"]


def test_several_mistakes_are_told_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "application_id: shop\n"
        "partitons: 8\n"
        "inputs:\n"
        "  - {topic: shop-orders, policy: paused}\n"
        "  - {topic: shop-customers}\n"
        "topology: |\n"
        "  Sub-topology: 0\n"
        "lifecycle: {type: manual, wait: 5}\n"
    )
    assert [line.partition("; expected")[0] for line in message_of(file).splitlines()] == [
        "bad.yaml:1: found no field `partitions`",
        "bad.yaml:2: partitons: found the unknown field `partitons`",
        "bad.yaml:5: inputs[1]: found no field `policy`",
        "bad.yaml:6: topology: found in the text, line 1: sub-topology 0 without a source",
        "bad.yaml:8: lifecycle.wait: found the unknown field `wait`",
    ]


def test_a_topology_that_is_not_there_hides_no_other_mistake(tmp_path: Path) -> None:
    changes = {"topology": "shop.topology.txt", "outputs": [{"topics": "shop-totals"}], "partitions": 0}
    snapshots = {"location": "/data", "stores": [{"name": "totals", "value": "avro:totals.avsc"}]}
    file = write(tmp_path, "shop", **changes, snapshots=snapshots)
    places = [line.partition(": found ")[0].split(": ")[1] for line in message_of(file).splitlines()]
    expected = {"partitions", "outputs[0]", "outputs[0].topics", "topology", "snapshots.stores[0].value"}
    assert (set(places), len(places)) == (expected, len(expected))


def test_a_cut_topology_is_told_by_its_file_and_line_and_hides_no_other_mistake(tmp_path: Path) -> None:
    lines = str(declared("shop")["topology"]).splitlines(keepends=True)
    (tmp_path / "shop.topology.txt").write_text("".join(lines[:4]))
    file = write(tmp_path, "shop", topology="shop.topology.txt", partitions=0)
    line = 1 + file.read_text().splitlines().index("topology: shop.topology.txt")
    assert f"shop.yaml:{line}: topology: found in shop.topology.txt, line 4: an arrow to" in message_of(file)
    assert "partitions: found 0" in message_of(file)


def test_a_named_file_that_is_no_text_is_told_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "shop.topology.txt").write_bytes(b"\xff\xfe")
    message = message_of(write(tmp_path, "shop", topology="shop.topology.txt"))
    assert "topology: found bytes that are not UTF-8; expected a readable file in UTF-8." in message
