"""An error of the program itself is told apart from findings, by programs that only see the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.cli.exit_codes import BROKEN, FINDINGS, OUTAGE, PASSED, REFUSED
from kafka_rescale.cli.main import main


@pytest.mark.parametrize("kind", [ValueError, EOFError])
def test_an_unexpected_error_has_an_exit_code_of_its_own(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Path) -> None:
        raise kind("a mistake of the program")

    monkeypatch.setattr("kafka_rescale.cli.declared.runtime_of", fail)
    (tmp_path / "a.yaml").touch()
    assert main(["validate", str(tmp_path / "a.yaml")]) == BROKEN
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.strip().startswith("Traceback ")
    assert f"\n{kind.__name__}: a mistake of the program\n" in captured.err
    assert BROKEN not in {PASSED, FINDINGS, REFUSED, OUTAGE}
