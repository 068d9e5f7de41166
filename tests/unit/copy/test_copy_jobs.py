"""The parts of the copy jobs that need neither Spark nor Kafka."""

from __future__ import annotations

import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from kafka_rescale.core.control.progress import PartitionProgress
from kafka_rescale.core.errors import ClusterTimedOut, Fenced, Outage, UnsafeState
from kafka_rescale.kafka.copy.settings import StaleCopy
from kafka_rescale.kafka.reading.progress import Snapshot
from kafka_rescale.spark.copy.warm_up import assert_converging
from kafka_rescale.spark.jobs import package_zip
from kafka_rescale.spark.jobs.exit_codes import DONE, FAILED, ORPHANED, SUPERSEDED
from kafka_rescale.spark.jobs.package_zip import build
from kafka_rescale.spark.jobs.task_errors import TaskFailure, as_text, from_text

from testbed.processes import is_running, wait_until

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"


def snapshot(position: int, end: int, seconds: float) -> Snapshot:
    return Snapshot((PartitionProgress(topic="t", partition=0, position=position, end=end),), 0, seconds)


def test_a_shrinking_lag_converges() -> None:
    assert_converging("warm_up/1", [snapshot(10 * i, 100 + 9 * i, i) for i in range(20)])


def test_a_lag_that_does_not_shrink_is_reported_with_both_rates() -> None:
    rounds = [snapshot(100 * i, 1000 + 100 * i, 2.0 * i) for i in range(4)]
    with pytest.raises(Outage, match=r"50 offsets/s come in, 50 offsets/s are copied"):
        assert_converging("warm_up/1", rounds)


def test_a_lag_that_a_pause_has_raised_converges_as_long_as_it_shrinks() -> None:
    """The first of these rounds was paused for hours. The lag before it says nothing of the rounds behind it."""
    lags = (2_000, 5_000_000, 250_000, 12_500)
    rounds = [snapshot(10**6, 10**6 + lag, 10.0 * n) for n, lag in enumerate(lags)]
    assert_converging("warm_up/1", rounds)
    with pytest.raises(Outage, match="a lag of 12,500 that does not shrink"):
        assert_converging("warm_up/1", [*rounds[:-2], rounds[-1], rounds[-1]])


def test_a_lag_that_shrinks_for_ever_is_given_up_as_well() -> None:
    with pytest.raises(Outage, match="after 51 rounds"):
        assert_converging("warm_up/1", [snapshot(i, 10**6, i) for i in range(52)])


@pytest.mark.parametrize(
    ("position", "acceptable", "within"), [(90, 10, True), (89, 10, False), (-1, 10**9, False)]
)
def test_a_partition_without_a_position_is_never_near(position: int, acceptable: int, within: bool) -> None:
    assert snapshot(position, 100, 1).within(acceptable) is within


@pytest.mark.parametrize(
    ("raised", "expected"), [(Fenced, Fenced), (UnsafeState, UnsafeState), (Outage, Outage), (StaleCopy, Outage)]
)
def test_a_typed_error_of_a_task_reaches_the_driver(raised: type, expected: type) -> None:
    fields = {"found": 'a "quoted"\nline', "expected": "y", "remedy": "z"}
    error = StaleCopy("x", 2, 1) if raised is StaleCopy else raised("x", **fields)
    with pytest.raises(TaskFailure) as failure, as_text():
        raise error
    arrived = from_text(RuntimeError(f"Job aborted.\n  {failure.value}\n\n\tat org.apache.spark.Something"))
    assert type(arrived) is expected
    assert str(arrived) == str(error)


def test_another_failure_is_left_as_it_is() -> None:
    failure = RuntimeError("out of memory")
    assert from_text(failure) is failure


def test_a_wait_that_timed_out_in_a_spark_task_arrives_in_its_own_words() -> None:
    remedy = "Look at the other tasks of the bridge; run it again."
    with pytest.raises(TaskFailure) as failure, as_text():
        raise ClusterTimedOut("the backlog to be carried on", seconds=60, remedy=remedy)
    arrived = from_text(RuntimeError(str(failure.value)))
    assert isinstance(arrived, ClusterTimedOut)
    assert str(arrived) == f"Timed out after 60 s waiting for the backlog to be carried on. {remedy}"


def test_the_zip_of_the_same_sources_stays_and_can_be_imported(tmp_path: Path) -> None:
    path = build(tmp_path)
    written = path.stat().st_mtime_ns
    assert build(tmp_path).stat().st_mtime_ns == written
    names = zipfile.ZipFile(path).namelist()
    assert "kafka_rescale/core/plan/plan.py" in names
    assert all(name.startswith("kafka_rescale/") and name.endswith((".py", ".json", ".pyc")) for name in names)
    code = "import kafka_rescale.spark.jobs.job as job; assert '.zip' in job.__file__"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(path)}, cwd=tmp_path, check=True)


def test_the_zip_has_what_python_has_compiled_and_nothing_outdated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    for module in ("__init__", "goods", "prices", "orders"):
        (package / f"{module}.py").write_text("KNOWN = 1")
    for module in ("goods", "prices"):
        py_compile.compile(str(package / f"{module}.py"))
    (package / "prices.py").write_text("KNOWN = 20")
    monkeypatch.setattr(package_zip, "PACKAGE", package)
    path = build(tmp_path / "a")
    assert [n for n in zipfile.ZipFile(path).namelist() if n.endswith(".pyc")] == ["shop/goods.pyc"]
    code = "from shop import goods, prices; assert goods.__file__.endswith('.pyc'); assert prices.KNOWN == 20"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(path)}, cwd=tmp_path / "a", check=True)
    # Files were compiled since, but a job may be at work with this zip.
    py_compile.compile(str(package / "orders.py"))
    written = path.stat().st_mtime_ns
    assert build(tmp_path / "a").stat().st_mtime_ns == written
    (package / "orders.py").write_text("KNOWN = 3")
    assert build(tmp_path / "a").stat().st_mtime_ns != written


def test_the_exit_codes_differ() -> None:
    assert len({DONE, FAILED, SUPERSEDED, ORPHANED}) == 4


def test_a_process_ends_when_its_parent_is_killed() -> None:
    child = "from kafka_rescale.spark.jobs.watchdog import exit_with_parent as e; import time; e(); time.sleep(60)"
    parent = (
        "import subprocess, sys, time; "
        f"p = subprocess.Popen([sys.executable, '-c', {child!r}]); print(p.pid, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, env={"PYTHONPATH": str(PLUGINS)}
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    # It must have started its watchdog. Otherwise the test would show nothing.
    wait_until(lambda: len(list(Path(f"/proc/{pid}/task").iterdir())) > 1, timeout=30, what="the watchdog thread")
    process.kill()
    process.wait()
    process.stdout.close()
    wait_until(lambda: not is_running(pid), timeout=10, what="the end of the child")


def test_a_reading_says_what_is_known_of_it_in_numbers_that_can_be_read() -> None:
    def at(position: int, **copied: int) -> PartitionProgress:
        return PartitionProgress(topic="t", partition=0, position=position, end=9_000, **copied)

    slow = Snapshot((at(4_000, records=4_000, bytes=40_000),), 0, 8.0)
    assert str(slow) == "4,000 records, 40.0 kB, 5.0 kB/s, lag 5,000, about 10 s left"
    assert str(Snapshot((at(0),), 0, 0.0)) == "0 records, 0 B, lag 9,000"
    assert str(Snapshot((at(-1),), 0, 3.0)) == "0 records, 0 B, none of 1 partitions begun"
    assert str(Snapshot((at(-1), at(8_999)), 0, 3.0)) == "0 records, 0 B, lag 9,001, 1 of 2 partitions not begun"
