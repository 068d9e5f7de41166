"""The wording of code and messages, as far as a program can check it (CONTRIBUTING.md, "How to write")."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from kafka_rescale.core.application.mistakes import Mistake, WrongValue
from kafka_rescale.core.errors import Complaint, Finding, Outage, PreflightRefused, RescaleError
from kafka_rescale.kafka.client.waiting import wait_until

from tests.support.house.documents import ROOT
from tests.support.house.sources import parsed_file

PRODUCT = [*(ROOT / "plugins" / "kafka_rescale").rglob("*.py"), *(ROOT / "spark_jobs").glob("*.py")]
COMPLAINT = Complaint("topic 't'", "no partition", "one", "Create it.")


def test_a_wait_that_is_in_vain_says_how_long_and_for_what() -> None:
    with pytest.raises(Outage) as error:
        wait_until(lambda: False, seconds=0, what="shop to run again", remedy="START IT BY HAND NOW.")
    assert str(error.value) == "Timed out after 0 s waiting for shop to run again. START IT BY HAND NOW."


def told_otherwise(tree: ast.AST) -> Iterator[str]:
    """Yield each `found` with "after … s": it reports a wait, but not in the words of a timeout."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "found" and isinstance(node.value, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.value.values
            )
            if "after … s" in text:
                yield text


def test_every_wait_is_told_in_the_same_words() -> None:
    errors = ROOT / "plugins" / "kafka_rescale" / "core" / "errors.py"
    found = {(file.name, text) for file in PRODUCT if file != errors for text in told_otherwise(parsed_file(file))}
    assert found == set()


def test_a_wait_in_other_words_is_found() -> None:
    (text,) = told_otherwise(
        ast.parse('Outage("x", found=f"no, after {seconds:.0f} s", expected="yes", remedy="")')
    )
    assert text == "no, after … s"


SENTENCE = re.compile(r"\bfound .*; expected ")


def composed(tree: ast.AST) -> Iterator[str]:
    """Yield the sentences of complaints that are written out instead of composed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Constant):
            text = ast.unparse(node)
            if SENTENCE.search(text):
                yield text


def test_the_sentence_of_a_complaint_is_composed_in_one_place() -> None:
    found = {file.name for file in PRODUCT if any(composed(parsed_file(file)))}
    assert found == {"errors.py"}


def test_a_sentence_that_is_written_out_is_found() -> None:
    assert list(composed(ast.parse('ValueError(f"found {value}; expected " "a name. Correct it.")')))


@pytest.mark.parametrize(
    "error",
    [RescaleError.of(COMPLAINT), Finding.of(COMPLAINT), PreflightRefused([Finding.of(COMPLAINT)]).complaint],
)
def test_every_bearer_of_a_complaint_says_the_same(error: object) -> None:
    assert str(error) == "topic 't': found no partition; expected one. Create it."


def test_a_mistake_names_its_field_and_a_wrong_value_leaves_that_to_pydantic() -> None:
    assert str(WrongValue.of(COMPLAINT)) == "found no partition; expected one. Create it."
    mistake = Mistake.of(("inputs", 0, "topic"), WrongValue.of(COMPLAINT).complaint)
    assert str(mistake.complaint) == "inputs[0].topic: found no partition; expected one. Create it."


PARTICIPLES = frozenset(
    [
        "grown",
        "begun",
        "given",
        "moved",
        "written",
        "taken",
        "kept",
        "made",
        "sent",
        "held",
        "told",
        "gone",
        "done",
        "seen",
        "drawn",
        "built",
        "caught",
        "brought",
    ]
)
EFFECTS = frozenset(
    [
        "add_stream_thread",
        "advance",
        "begin_transaction",
        "collect",
        "commit",
        "create_partitions",
        "create_topics",
        "delete_records",
        "delete_topics",
        "ensure_topic",
        "expand_processors",
        "fence",
        "grow_own_topics",
        "grow_topic",
        "grow_topics",
        "hold_compaction",
        "insist",
        "init_transactions",
        "publish",
        "put",
        "put_result",
        "release",
        "release_compaction",
        "remove_clients",
        "remove_stream_thread",
        "run",
        "run_beside",
        "send",
        "send_offsets_to_transaction",
        "set_offset",
        "start_clients",
        "urlopen",
        "write",
    ]
)
"""Calls that change a cluster, a file, a process or the control topic."""


def named_by_a_participle(tree: ast.Module) -> Iterator[str]:
    """Yield the functions and methods whose name begins with a participle although they have an effect."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for function in (node for body in bodies for node in body if isinstance(node, ast.FunctionDef)):
        word = function.name.strip("_").split("_")[0]
        if (word in PARTICIPLES or (word.endswith("ed") and word != "seed")) and called(function) & EFFECTS:
            yield function.name


def called(function: ast.FunctionDef) -> set[str]:
    """Return the names of all that a function calls."""
    functions = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in functions}


def test_no_function_with_an_effect_is_named_by_a_participle() -> None:
    """Its name begins with a verb. A participle says that a function only returns a changed copy."""
    found = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in PRODUCT
        for name in named_by_a_participle(parsed_file(file))
    }
    assert found == set()


def test_a_participle_for_an_effect_is_found() -> None:
    code = (
        "class A:\n    def added(self): return add_stream_thread()\n    def advanced(self): return self.copy()\n"
    )
    assert list(named_by_a_participle(ast.parse(f"{code}def grown(admin): admin.grow_topic('t', 2)"))) == [
        "grown",
        "added",
    ]
