"""Mistakes in what an application file names, and in its characters, give one message and harm no other file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.core.errors import InvalidInput, Unreadable
from kafka_rescale.operations.application.load import load_application

from tests.support.small_application import declared, write

INPUTS = declared("shop")["inputs"]


def message_of(file: Path) -> str:
    """Return the refusal's message without the directory."""
    with pytest.raises(InvalidInput) as error:
        load_application(file)
    return str(error.value).replace(f"{file.parent}/", "")


def test_a_topology_that_can_not_be_read_at_the_moment_is_no_mistake_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount may be away. Airflow tries again what raises this, and nothing else of this kind."""
    (tmp_path / "shop.topology.txt").write_text(declared("shop")["topology"])
    file, read_text = write(tmp_path, "shop", topology="shop.topology.txt"), Path.read_text

    def away(path: Path, **arguments: Any) -> str:
        if path.suffix == ".txt":
            raise OSError(5, "Input/output error")
        return read_text(path, **arguments)

    monkeypatch.setattr(Path, "read_text", away)
    with pytest.raises(Unreadable, match=r"shop.topology.txt: found Input/output error"):
        load_application(file)


def test_a_module_of_the_user_that_fails_is_a_mistake_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any other exception would end the reading of all other files, too."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needs_a_variable.py").write_text("import os\nos.environ['ACME_NOT_SET']\n")
    (tmp_path / "half_written.py").write_text("def place(:\n")
    for module, found in (("needs_a_variable", "KeyError: 'ACME_NOT_SET'"), ("half_written", "SyntaxError: ")):
        inputs = [{**INPUTS[0], "partitioner": f"{module}:place"}, INPUTS[1]]
        message = message_of(write(tmp_path, "shop", inputs=inputs))
        assert f"inputs[0].partitioner: found {found}" in message
        assert "importable" in message


@pytest.mark.parametrize("schema", ["{}", '{"type": "array"}', '{"type": ["null", {}]}', "5", "null"])
def test_an_avro_schema_that_lacks_a_part_is_a_mistake_of_the_file(tmp_path: Path, schema: str) -> None:
    (tmp_path / "value.avsc").write_text(schema)
    stores = [{"name": "totals", "key": "string", "value": "avro:value.avsc"}]
    message = message_of(write(tmp_path, "shop", snapshots={"location": "/data", "stores": stores}))
    assert "expected an Avro schema in JSON" in message


def test_a_sub_topology_without_a_source_is_a_mistake(tmp_path: Path) -> None:
    fields = declared("shop")
    del fields["topology"]
    fields["subtopologies"] = [{"sources": [], "stores": ["totals"]}]
    file = tmp_path / "shop.yaml"
    file.write_text(str(fields))
    assert "subtopologies[0].sources: found []; expected at least 1 entry" in message_of(file)


def test_an_invisible_character_is_named_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path, "shop")
    file.write_text("# first\n# caf\x92\n" + file.read_text())
    assert message_of(file).startswith("shop.yaml:2: found the character U+0092 (")


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    text = declared("shop")["topology"]
    (tmp_path / "shop.topology.txt").write_text("\ufeff" + text[text.index("Sub-topology") :], encoding="utf-8")
    load_application(write(tmp_path, "shop", topology="shop.topology.txt"))
