"""The script and the class in docs/lifecycle.md do what the page says."""

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
from kafka_rescale.lifecycle import status
from kafka_rescale.lifecycle.instance import Instance
from kafka_rescale.lifecycle.python import OwnClass

from testbed.processes import wait_until

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "lifecycle.md").read_text()
NAME = "order-totals-g2"
KUBECTL = """#!/bin/sh
# A cluster: a StatefulSet is a file with its replicas, a pod a line of `pods`, which is there at the second look
# and ends at a later one, or when `hang` is gone. A Lease is a file with version and holder. As with the API, one
# request is served at a time, `create` fails if it is there, and `replace` if its version is another.
set -eu
cd "$(dirname "$0")"
echo "$*" >>calls
[ ! -e down ] || exit 1
case "$*" in
"create --filename - "* | "replace --filename - "*)
    given=$(cat)
    holder=$(echo "$given" | sed -n 's/.*holderIdentity: "\\([^"]*\\)".*/\\1/p')
    version=$(echo "$given" | sed -n 's/.*resourceVersion: "\\([^"]*\\)".*/\\1/p')
    exec 8>api; flock 8
    found=$(cut -d' ' -f1 lease 2>/dev/null || true)
    if [ "$1" = create ]; then [ -z "$found" ] || exit 1; else [ "$found" = "$version" ] || exit 1; fi
    echo x >>versions
    next=$(wc -l <versions)
    printf '%s %s' "$next" "$holder" >lease
    echo "$holder $1" >>holders
    printf %s "$next" ;;
"get lease order-totals-g2-lifecycle --ignore-not-found --output "*)
    exec 8>api; flock 8
    cat lease 2>/dev/null || true ;;
"delete lease order-totals-g2-lifecycle --ignore-not-found") exec 8>api; flock 8; rm -f lease ;;
"apply --filename -")
    cat >applied; echo 1 >set
    if [ ! -e pods ]; then echo pod/order-totals-g2-0 >made; fi ;;
"get statefulset order-totals-g2 --ignore-not-found --output name")
    if [ -e set ]; then echo statefulset.apps/order-totals-g2; fi ;;
"get statefulset order-totals-g2 --ignore-not-found --output jsonpath={.spec.replicas}")
    if [ -e set ]; then printf %s "$(cat set)"; fi ;;
"scale statefulset.apps/order-totals-g2 --replicas=0") echo 0 >set ;;
"get pods --selector app=order-totals-g2 --output name")
    if [ -e made ]; then mv made pods; exit 0; fi
    if [ ! -e pods ]; then exit 0; fi
    cat pods
    if [ "$(cat set)" = 0 ]; then echo >>looks; fi
    if [ ! -e hang ] && [ -e looks ] && [ "$(wc -l <looks)" -ge 2 ]; then rm pods; fi ;;
*) exit 9 ;;
esac
"""
SLEEP = """#!/bin/sh
exec /bin/sleep 0.0$1
"""


def block(language: str, beginning: str = "") -> str:
    """The first code block of the page in a language that begins with a text."""
    found = re.search(rf"```{language}\n({re.escape(beginning)}.*?)```", TEXT, re.DOTALL)
    assert found is not None
    return found[1]


class Cluster:
    """The script in a directory with a stand-in for kubectl.

    It is called from another directory, as on a worker.
    """

    def __init__(self, directory: Path) -> None:
        self.directory, self.home = directory, directory / "home"
        self.home.mkdir()
        for name, text in {"deploy.sh": block("sh"), "kubectl": KUBECTL, "sleep": SLEEP}.items():
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)
        (directory / "order-totals.statefulset.yaml").write_text("{n: @NAME@, p: @PARTITIONS@, s: '@SUPPLIER@'}\n")

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Call the script as a worker does. A worker goes on when nothing holds the script's output any more."""
        environment = {"PATH": f"{self.directory}:{os.environ['PATH']}"}
        given: Any = {"cwd": self.home, "env": environment, "text": True}
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(["../deploy.sh", *arguments], **given, **pipes, start_new_session=True)

    def run(self, *arguments: str) -> int:
        with self.begin(*arguments) as process:
            process.communicate(timeout=60)
            return process.returncode

    def has(self, name: str, text: str) -> bool:
        file = self.directory / name
        return file.exists() and text in file.read_text()

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
    assert cluster.run("stop", NAME) == 0
    assert not (cluster.directory / "pods").exists(), "a stop returns when every pod has ended"
    assert cluster.run("status", NAME) == 3
    assert cluster.run("start-held", NAME, "8") == 0
    assert cluster.read("applied") == f"{{n: {NAME}, p: 8, s: 'org.kafkarescale.HoldGate'}}\n"
    assert cluster.run("stop", NAME) == 0
    assert cluster.run("start", NAME, "8") == 0
    assert cluster.read("applied") == f"{{n: {NAME}, p: 8, s: ''}}\n"


@pytest.mark.parametrize("first", ["start", "start-gated", "start-held"])
def test_a_start_leaves_pods_that_run_as_they_are(cluster: Cluster, first: str) -> None:
    """With another template, Kubernetes would restart them one by one, after the promotion too."""
    assert cluster.run(first, NAME, "8") == 0
    applied = cluster.read("applied")
    for again in ("start", "start-gated", "start-held"):
        assert cluster.run(again, NAME, "8") == 0
    assert cluster.read("applied") == applied
    assert cluster.read("calls").count("apply") == 1


def test_a_stop_of_what_is_not_there_succeeds(cluster: Cluster) -> None:
    assert cluster.run("stop", NAME) == 0
    assert "scale" not in cluster.read("calls")


def test_a_cluster_that_does_not_answer_is_neither_running_nor_stopped(cluster: Cluster) -> None:
    (cluster.directory / "down").touch()
    assert cluster.run("status", NAME) not in {0, 3}
    assert cluster.run("stop", NAME) != 0
    assert cluster.run("start", NAME, "8") != 0


def test_a_start_on_another_worker_waits_for_a_stop_that_is_at_work(cluster: Cluster) -> None:
    """The stop's task was killed and is tried again on another worker, whose file system knows nothing of it."""
    assert cluster.run("start", NAME, "4") == 0
    (cluster.directory / "hang").touch()
    with cluster.begin("stop", NAME) as stop:
        wait_until(lambda: cluster.has("set", "0"), timeout=30, what="the stop to be at work")
        with cluster.begin("start", NAME, "8") as start:
            created = lambda: cluster.read("calls").count("create --filename")  # noqa: E731
            before = created()
            # This is longer than the lease of a holder that does not renew it.
            wait_until(lambda: created() >= before + 60, timeout=120, what="the start to try again and again")
            assert "p: 8" not in cluster.read("applied")
            (cluster.directory / "hang").unlink()
            assert stop.wait(60) == 0
            assert start.wait(60) == 0
    assert "p: 8" in cluster.read("applied")
    assert not (cluster.directory / "lease").exists(), "the last one has given it back"


def test_the_lock_of_a_worker_that_died_is_taken_over_by_one_script_only(cluster: Cluster) -> None:
    (cluster.directory / "lease").write_text("0 gone-1")
    with cluster.begin("start", NAME, "8") as one, cluster.begin("start", NAME, "8") as other:
        assert (one.wait(60), other.wait(60)) == (0, 0)
    took = [line.split() for line in cluster.read("holders").splitlines()]
    assert {holder for holder, _ in took} == {f"{os.uname().nodename}-{each.pid}" for each in (one, other)}
    # One holder has taken the lease over by `replace`. The other one created it afterwards.
    assert [how for holder, how in first_words(took)] == ["replace", "create"]


def first_words(took: list[list[str]]) -> list[tuple[str, str]]:
    """How each holder got the lease, in their order."""
    found: dict[str, str] = {}
    for holder, how in took:
        found.setdefault(holder, how)
    return list(found.items())


def test_a_script_that_was_killed_leaves_nothing_that_renews_its_lock(cluster: Cluster) -> None:
    assert cluster.run("start", NAME, "4") == 0
    (cluster.directory / "hang").touch()
    with cluster.begin("stop", NAME) as stop:
        wait_until(lambda: cluster.has("set", "0"), timeout=30, what="the stop to be at work")
        stop.kill()
    assert cluster.run("start", NAME, "8") == 0
    assert "p: 8" in cluster.read("applied"), "the pods that are there have been told to end"


def test_a_script_whose_lock_was_taken_ends(cluster: Cluster) -> None:
    assert cluster.run("start", NAME, "4") == 0
    (cluster.directory / "hang").touch()
    with cluster.begin("stop", NAME) as stop:
        wait_until(lambda: cluster.has("set", "0"), timeout=30, what="the stop to be at work")
        (cluster.directory / "lease").write_text("900 another-1")
        assert stop.wait(60) != 0
    assert cluster.read("lease") == "900 another-1", "it is left to who has it"


def test_the_commands_of_the_example_are_those_of_the_script() -> None:
    example = re.findall(r"^  \w+: \./deploy\.sh (\S+) \{application_id\}", block("yaml"), re.MULTILINE)
    assert example == ["start", "start-gated", "start-held", "stop", "status"]
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
    made.stop(green)
    made.start_held(green)
    made.start(green)
    assert api.wanted[f"http://api/{NAME}"]["client_supplier"] == "org.kafkarescale.HoldGate", "it runs already"
    api.wanted[f"http://api/{NAME}"]["replicas"] = 0  # by a stop that was killed: the instances are ending
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
    monkeypatch.setattr(status, "STATUS_SECONDS", 0.0)
    with pytest.raises(Outage, match="503"):
        made.is_running(green)


class Api:
    """A stand-in for ``requests`` and the API behind it. Instances end one by one."""

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
            status_code=status,
            raise_for_status=raise_for_status,
            json=lambda: {"replicas": self.wanted[url]["replicas"], "instances": self.instances},
        )
