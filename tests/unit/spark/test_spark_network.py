"""The hint that the Kafka settings in Spark's tasks cross the network in the clear."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_rescale.spark.jobs.network import hint_of_network

ON = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


@pytest.fixture(autouse=True)
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with Spark's defaults on this machine, which is not there yet."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path / "spark-defaults.conf"


@pytest.mark.parametrize("master", ["spark://master:7077", "yarn", "k8s://https://k8s:6443"])
def test_it_is_given_unless_spark_encrypts(master: str) -> None:
    assert f"Spark tasks on {master} have the settings of the Kafka connection" in hint_of_network(master, {})
    for name in ON:
        assert hint_of_network(master, {**ON, name: "false"})
    assert hint_of_network(master, ON) == ""
    assert hint_of_network(master, {"spark.authenticate": "TRUE", "spark.ssl.rpc.enabled": "true"}) == ""


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4,2]"])
def test_on_one_machine_there_is_none(master: str) -> None:
    assert hint_of_network(master, {}) == ""


def test_defaults_of_the_machine_count_unless_the_job_says_otherwise(defaults: Path) -> None:
    defaults.write_text("# ours\n\nspark.authenticate   true\nspark.network.crypto.enabled=true\nalone\n")
    assert hint_of_network("yarn", {}) == ""
    assert hint_of_network("yarn", {"spark.authenticate": "false"})


def test_defaults_of_spark_s_own_directory_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    assert hint_of_network("yarn", {})
    (tmp_path / "spark" / "conf").mkdir(parents=True)
    (tmp_path / "spark" / "conf" / "spark-defaults.conf").write_text("".join(f"{k}\t{v}\n" for k, v in ON.items()))
    assert hint_of_network("yarn", {}) == ""
