"""Each table row that names tests says what kind of proof they are, and claims no more than the tests start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.house.proofs import PAGES, Proof, proofs_of, with_proofs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_row_says_what_its_tests_are(page: Path) -> None:
    """If not: PYTHONPATH=plugins .venv/bin/python -m scripts.create_proofs"""
    text = page.read_text()
    assert text == with_proofs(text)


def test_the_kinds_are_explained_where_they_are_used() -> None:
    legend = (PAGES[0].parent / "support.md").read_text().partition("## Proof")[2].partition("## ")[0]
    assert all(f"**{proof}**" in legend for proof in Proof)
    for page in PAGES:
        assert page.name == "support.md" or "support.md#proof" in page.read_text(), page.name


@pytest.mark.parametrize(
    ("test", "proof"),
    [
        ("U/test_proofs.py::test_every_row_says_what_its_tests_are", Proof.UNIT),
        ("U/test_stream_threads.py::runTest", Proof.UNIT),
        ("I/test_assignors_of_kafka_streams.py::test_states_change_as_in_kafka_streams", Proof.STREAMS),
        ("I/test_growing_offsets.py", Proof.BROKER),
        ("I/test_exception_handler.py::test_what_a_thread_died_of_crosses_spark", Proof.LIVE),
        ("I/test_expansion_control_run.py::test_a_rescaled_application_equals_its_control_run", Proof.LIVE),
        ("S/test_pipeline_dags.py", Proof.AIRFLOW),
    ],
)
def test_the_kind_of_a_test_is_that_of_what_it_starts(test: str, proof: Proof) -> None:
    assert proofs_of(f"`{test}`") == [proof]


@pytest.mark.parametrize(
    "name", ["U/test_proofs.py::test_that_is_gone", "U/test_gone.py::test_a", "U/test_gone.py"]
)
def test_a_test_that_does_not_exist_is_of_no_kind(name: str) -> None:
    with pytest.raises(LookupError, match=name.removeprefix("U/")):
        proofs_of(f"`{name}`")


def test_a_row_that_claims_more_or_nothing_is_seen() -> None:
    row = "| it grows | `U/test_growth.py` | unit |"
    table = f"\n| what | by | proof |\n|---|---|---|\n{row}\n| nothing | – | – |\n"
    assert with_proofs(table) == table
    assert with_proofs(table.replace("| unit |", "| Airflow |")) == table
    assert with_proofs("\n| what | by |\n|---|---|\n| it grows | `U/test_growth.py` |\n| nothing | – |\n") == table
    assert proofs_of("`S/test_pipeline_dags.py`, `U/test_growth.py`") == [Proof.UNIT, Proof.AIRFLOW]
