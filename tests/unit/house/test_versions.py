"""One version of everything: requirements, jars, images and the installed packages agree."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENT_FILES = sorted(ROOT.glob("requirements*.txt"))
POM = "{http://maven.apache.org/POM/4.0.0}"


def requirement_lines(file: Path) -> list[str]:
    lines = [line.strip() for line in file.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "-r "))]


def pins() -> dict[str, str]:
    lines = [line for file in REQUIREMENT_FILES for line in requirement_lines(file)]
    return dict(line.split("==") for line in lines)


def pom_property(name: str) -> str:
    text = ElementTree.parse(ROOT / "jvm/pom.xml").getroot().findtext(f"{POM}properties/{POM}{name}")
    assert text is not None
    return text


def image_tag(image: str) -> str:
    """The tag of ``image``. It must be the same in all Dockerfiles and in the compose file."""
    files = [ROOT / "docker-compose.yml", *sorted((ROOT / "docker").glob("*/Dockerfile"))]
    tags = {found.group(1) for file in files for found in re.finditer(rf"\b{image}:(\S+)", file.read_text())}
    assert len(tags) == 1, f"{image}: {tags}"
    return tags.pop()


def python_of_image(image: str) -> str:
    found = re.search(r"3\.\d+", image_tag(image).removeprefix(pins()["apache-airflow"]))
    assert found is not None
    return found.group()


@pytest.mark.parametrize("file", REQUIREMENT_FILES, ids=lambda file: file.name)
def test_every_requirement_is_pinned(file: Path) -> None:
    assert requirement_lines(file)
    for line in requirement_lines(file):
        assert re.fullmatch(r"[A-Za-z0-9-]+==[0-9][0-9.a-z]*", line), line


def test_no_requirement_is_pinned_twice() -> None:
    names = [line.split("==")[0].lower() for file in REQUIREMENT_FILES for line in requirement_lines(file)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("name", "pinned"), pins().items())
def test_what_is_installed_is_what_is_pinned(name: str, pinned: str) -> None:
    assert version(name) == pinned


def test_one_spark_everywhere() -> None:
    """pyspark and pyspark-client share a directory for their files. With two versions, a mixture would run."""
    spark = pins()["pyspark"]
    assert pins()["pyspark-client"] == spark
    assert pom_property("spark.version") == spark
    assert image_tag("apache/spark").split("-")[0] == spark


def test_one_airflow_everywhere() -> None:
    assert image_tag("apache/airflow").split("-")[0] == pins()["apache-airflow"]


def test_the_broker_of_the_tests_is_the_broker_of_the_compose_file() -> None:
    assert image_tag("apache/kafka") == pom_property("kafka.version")


def test_driver_and_executors_have_the_same_minor_version_of_python() -> None:
    """PySpark refuses to run a function of the driver with another minor version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert python_of_image("apache/airflow") == python_of_image("python")
    assert f">={python_of_image('python')}" == project["requires-python"]


def test_driver_and_executors_have_the_same_java() -> None:
    assert image_tag("eclipse-temurin") == "17-jre"


def test_the_compose_file_builds_the_images_that_these_tests_read() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].values()
    built = {service["build"]["dockerfile"] for service in services if "build" in service}
    assert built == {str(file.relative_to(ROOT)) for file in (ROOT / "docker").glob("*/Dockerfile")}
