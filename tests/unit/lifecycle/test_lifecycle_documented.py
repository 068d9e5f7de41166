"""The script and the class that docs/lifecycle.md gives do what they are said to do."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka_rescale.core.application.commands import PLACEHOLDERS
from kafka_rescale.core.errors import Outage
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.lifecycle.python import OwnClass

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "lifecycle.md").read_text()
NAME = "order-totals-g2"
KUBECTL = """#!/bin/sh
# A cluster: a StatefulSet is a file with its replicas, a pod a line of `pods`, which is there at the second look
# and ends at a later one.
set -eu
echo "$*" >>calls
[ ! -e down ] || exit 1
case "$*" in
"apply --filename -")
    cat >applied; echo 1 >set
    if [ ! -e pods ]; then echo pod/order-totals-g2-0 >made; fi ;;
"get statefulset order-totals-g2 --ignore-not-found --output name")
    if [ -e set ]; then echo statefulset.apps/order-totals-g2; fi ;;
"scale statefulset.apps/order-totals-g2 --replicas=0") echo 0 >set ;;
"get pods --selector app=order-totals-g2 --output name")
    if [ -e made ]; then mv made pods; exit 0; fi
    if [ ! -e pods ]; then exit 0; fi
    cat pods
    if [ "$(cat set)" = 0 ]; then echo >>looks; fi
    if [ -e looks ] && [ "$(wc -l <looks)" -ge 2 ]; then rm pods; fi ;;
*) exit 9 ;;
esac
"""


def block(language: str, beginning: str = "") -> str:
    """The first code block of the page in a language that begins so."""
    found = re.search(rf"```{language}\n({re.escape(beginning)}.*?)```", TEXT, re.DOTALL)
    assert found is not None
    return found[1]


class Cluster:
    """The script in a directory with a stand-in of kubectl; it is called from another one, as on a worker."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.home = directory, directory / "home"
        self.home.mkdir()
        for name, text in {"deploy.sh": block("sh"), "kubectl": KUBECTL, "sleep": "#!/bin/sh\n"}.items():
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)
        (directory / "order-totals.statefulset.yaml").write_text("{n: @NAME@, p: @PARTITIONS@, s: '@SUPPLIER@'}\n")

    def run(self, *arguments: str) -> int:
        environment = {"PATH": f"{self.directory}:{os.environ['PATH']}"}
        return subprocess.run(
            ["../deploy.sh", *arguments], cwd=self.home, env=environment, timeout=30, check=False
        ).returncode

    def read(self, name: str) -> str:
        return (self.directory / name).read_text()


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_the_script_starts_and_stops_and_status_tells(cluster: Cluster) -> None:
    assert cluster.run("status", NAME) == 3
    assert cluster.run("start-gated", NAME, "8") == 0
    assert cluster.read("applied") == f"{{n: {NAME}, p: 8, s: 'org.kafkarescale.WarmUpGate'}}\n"
    assert cluster.run("status", NAME) == 0
    assert cluster.run("start", NAME, "8") == 0
    assert cluster.read("applied") == f"{{n: {NAME}, p: 8, s: ''}}\n"
    assert cluster.run("stop", NAME) == 0
    assert not (cluster.directory / "pods").exists(), "a stop returns when every pod has ended"
    assert cluster.run("status", NAME) == 3


def test_a_stop_of_what_is_not_there_succeeds(cluster: Cluster) -> None:
    assert cluster.run("stop", NAME) == 0
    assert "scale" not in cluster.read("calls")


def test_a_cluster_that_does_not_answer_is_neither_running_nor_stopped(cluster: Cluster) -> None:
    (cluster.directory / "down").touch()
    assert cluster.run("status", NAME) not in {0, 3}
    assert cluster.run("stop", NAME) != 0
    assert cluster.run("start", NAME, "8") != 0


def test_the_commands_of_the_example_are_those_of_the_script() -> None:
    example = re.findall(r"^  \w+: \./deploy\.sh (\S+) \{application_id\}", block("yaml"), re.MULTILINE)
    assert example == ["start", "start-gated", "stop", "status"]
    table = re.findall(r"^\| `\{(\w+)\}`", TEXT, re.MULTILINE)
    assert sorted(table) == sorted(PLACEHOLDERS)


def test_the_fields_of_an_instance_are_all_told() -> None:
    told = re.findall(r"^\| `(\w+)` \|", TEXT.partition("| of `instance` |")[2].partition("\n\n")[0], re.MULTILINE)
    assert told == list(Instance.__dataclass_fields__)


def test_the_class_calls_its_api_and_waits_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    exec(compile(block("python"), "lifecycle.md", "exec"), names)
    api = Api()
    monkeypatch.setenv("DEPLOYMENTS_URL", "http://api")
    monkeypatch.setitem(names, "requests", api)
    monkeypatch.setitem(names, "time", SimpleNamespace(monotonic=lambda: 0, sleep=lambda _: None))
    made, green = OwnClass("deployments:OrderTotals", names["OrderTotals"]()), Instance(NAME, 2, 8, {"a": "a-p8"})
    assert not made.is_running(green)
    made.start_gated(green)
    assert api.wanted[f"http://api/{NAME}"]["client_supplier"] == "org.kafkarescale.WarmUpGate"
    made.start(green)
    assert api.wanted[f"http://api/{NAME}"] == {
        "application_id": NAME,
        "partitions": 8,
        "inputs": {"a": "a-p8"},
        "replicas": 4,
    }
    assert made.is_running(green)
    made.stop(green)
    assert api.instances == 0
    api.status = 503
    with pytest.raises(Outage, match="503"):
        made.is_running(green)


class Api:
    """Stands for ``requests`` and the API behind it: instances end one by one."""

    def __init__(self) -> None:
        self.wanted: dict[str, Any] = {}
        self.instances, self.status = 0, 200

    def put(self, url: str, json: dict[str, Any], timeout: float) -> Any:
        self.wanted[url] = json
        self.instances = max(self.instances, json["replicas"])
        return SimpleNamespace(raise_for_status=lambda: None)

    def get(self, url: str, timeout: float) -> Any:
        if url in self.wanted and not self.wanted[url]["replicas"]:
            self.instances = max(0, self.instances - 1)

        def raise_for_status() -> None:
            if self.status != 200:
                raise OSError(self.status)

        status = self.status if url in self.wanted else 404
        return SimpleNamespace(
            status_code=status, raise_for_status=raise_for_status, json=lambda: {"instances": self.instances}
        )
