"""The wheel's declarations fit its content, and the versions that are installed and run together."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from kafka_rescale import __version__
from kafka_rescale.airflow.all_dags import KINDS, all_dags
from kafka_rescale.airflow.provider import get_provider_info
from kafka_rescale.cli.exit_codes import PASSED, REFUSED
from kafka_rescale.cli.main import main
from kafka_rescale.core import installation
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.installation import GATE_JAR, own_file
from kafka_rescale.lifecycle.programs import home
from kafka_rescale.operations.application.load import application_files
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from testbed.jars import GATE_JAR as BUILT_GATE_JAR
from tests.support.airflow.dag_bags import parsed
from tests.support.application_files import write_application
from tests.support.house.sources import parsed_file

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "plugins" / "kafka_rescale"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRA = PROJECT["optional-dependencies"]
DECLARED = [Requirement(line) for line in (*PROJECT["dependencies"], *EXTRA["spark"])]
OF_THE_TEST_BED = {"matplotlib"}
OF_AIRFLOW = {"croniter", "cryptography", "fastapi", "psutil", "starlette"}
"""Packages that Airflow brings. A range in this project could only contradict Airflow's range."""


def pins() -> dict[str, str]:
    """The versions that run together, without development tools."""
    files = (ROOT / "requirements.txt", ROOT / "requirements-spark.txt")
    lines = [line for file in files for line in file.read_text().splitlines() if "==" in line]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


OF_THE_USER = {"aws_msk_iam_sasl_signer"}
"""Packages that are imported only if a user has installed them."""


def shipped() -> list[Path]:
    files = list(PACKAGE.rglob("*.py"))
    return [*files, *(ROOT / "spark_jobs").glob("*.py"), ROOT / "examples" / "kafka_rescale_dags.py"]


def imported(file: Path) -> set[str]:
    """The packages that a file imports, at its top, within a function, or only for type checking."""
    nodes = list(ast.walk(parsed_file(file)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"kafka_rescale"}


@pytest.mark.parametrize("requirement", DECLARED, ids=lambda requirement: requirement.name)
def test_the_version_that_is_run_is_within_the_declared_range(requirement: Requirement) -> None:
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])
    assert any(each.operator == "<" for each in requirement.specifier)


def test_everything_that_is_pinned_is_declared() -> None:
    declared = {canonicalize_name(requirement.name) for requirement in DECLARED}
    assert pins().keys() - OF_THE_TEST_BED == declared


def test_everything_that_is_imported_is_declared() -> None:
    declared = {canonicalize_name(requirement.name) for requirement in DECLARED} | OF_AIRFLOW
    distributions = packages_distributions()
    for file in shipped():
        for name in imported(file) - OF_THE_USER:
            found = {canonicalize_name(each) for each in distributions[name]}
            assert found & declared, f"{file.relative_to(ROOT)} imports {name}, of {found}"


def test_the_provider_names_every_module_of_its_kinds() -> None:
    info = get_provider_info()
    assert (info["package-name"], info["versions"]) == (PROJECT["name"], [__version__])
    for kind in ("hooks", "operators", "sensors", "triggers"):
        files = {file.stem for file in (PACKAGE / "airflow" / kind).glob("*.py")} - {"__init__"}
        (listed,) = info[kind]
        assert listed["python-modules"] == [f"kafka_rescale.airflow.{kind}.{name}" for name in sorted(files)]


def test_the_provider_is_as_airflow_wants_it() -> None:
    from airflow.providers_manager import _create_provider_info_schema_validator

    _create_provider_info_schema_validator().validate(get_provider_info())


def test_the_changelog_has_a_place_for_the_next_version() -> None:
    assert re.search(r"^## Unreleased$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


class TestOneDagFile:
    @pytest.fixture(autouse=True)
    def applications(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
        write_application(tmp_path, chain="shop")
        (tmp_path / "broken.yaml").write_text("application_id: [")
        (tmp_path / "also.yaml").write_text("runtime: spark\napplication_id: [")

    def test_it_has_the_dags_of_the_folder(self) -> None:
        assert all_dags().keys() == parsed().dags.keys()

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_task_is_given_its_dag_and_no_other_kind(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        of_kind = KINDS[kind]()
        for dag_id in of_kind:
            monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", dag_id)
            made = all_dags()
            assert dag_id in made
            assert made.keys() <= of_kind.keys() | KINDS["expand"]().keys()


class TestInstalled:
    """As in a wheel, in which the files of the project are within the package."""

    @pytest.fixture(autouse=True)
    def inside(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        inside = tmp_path / "shipped"
        inside.mkdir()
        monkeypatch.setattr(installation, "SHIPPED", inside)
        monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
        for name in ("KAFKA_RESCALE_APPLICATIONS", "KAFKA_RESCALE_HOME"):
            monkeypatch.delenv(name, raising=False)
        return inside

    def test_its_files_are_within_the_package(self, inside: Path) -> None:
        assert own_file("spark_jobs") == inside / "spark_jobs"

    def test_the_files_of_the_user_are_in_airflows_home(self, tmp_path: Path) -> None:
        file = write_application(tmp_path / "airflow" / "applications")
        assert application_files() == [file]
        assert home() == tmp_path / "airflow"

    def test_without_their_directory_airflow_shows_an_import_error(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput) as error:
            all_dags()
        assert str(error.value) == (
            f"application files: found {tmp_path / 'airflow' / 'applications'}; expected an existing directory of "
            "application files. Create it, or name another one in KAFKA_RESCALE_APPLICATIONS for all of Airflow."
        )

    def test_without_a_variable_airflows_home_is_where_airflow_has_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("AIRFLOW_HOME")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert home() == tmp_path / "airflow"

    def test_a_file_that_is_not_there_is_named(self, inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["path", "gate"]) == REFUSED
        assert f"found no {inside / GATE_JAR}" in capsys.readouterr().err


class TestCheckout:
    def test_its_files_are_where_they_are_built(self) -> None:
        assert own_file(GATE_JAR) == BUILT_GATE_JAR
        assert own_file("spark_jobs") == ROOT / "spark_jobs"

    def test_the_files_of_the_user_are_beside_the_plugins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("KAFKA_RESCALE_APPLICATIONS", "KAFKA_RESCALE_HOME"):
            monkeypatch.delenv(name, raising=False)
        assert home() == ROOT
        assert ROOT / "applications" / "flights.yaml" in application_files()

    def test_a_path_is_printed_for_the_shell(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["path", "spark-jobs"]) == PASSED
        assert capsys.readouterr().out == f"{ROOT / 'spark_jobs'}\n"


def test_what_is_run_before_a_commit_is_what_make_runs() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    commands = {hook["id"]: hook["entry"].split(" --")[0] for hook in repository["hooks"]}
    assert commands == {
        "ruff": ".venv/bin/ruff check",
        "ruff-format": ".venv/bin/ruff format",
        "mypy": "make typecheck",
    }
