"""Application files as DAGs: chains of several files, and files that can't be used. They harm no other file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import yaml
from kafka_rescale.airflow.all_dags import KINDS, all_dags
from kafka_rescale.airflow.runs import CHAINED
from kafka_rescale.core.errors import InvalidInput, Refused

from tests.support.airflow.dag_bags import parsed
from tests.support.application_files import write_application

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag


@pytest.fixture
def applications(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", str(tmp_path))
    write_application(tmp_path)
    return tmp_path


def write_link(directory: Path, name: str, reads: str, writes: str) -> None:
    """An application of the chain ``shop``."""
    write_application(
        directory,
        application_id=name,
        chain="shop",
        inputs=[{"topic": reads, "policy": "unkeyed"}],
        outputs=[{"topic": writes}],
        subtopologies=[
            {"sources": [reads], "sinks": ["by-key-repartition"]},
            {"sources": ["by-key-repartition"], "stores": ["sums"], "sinks": [writes]},
        ],
        stores=[{"name": "sums", "type": "timestamped-key-value"}],
    )


class TestChains:
    @pytest.fixture
    def chained(self, applications: Path) -> DagBag:
        for name, reads, writes in (("up", "orders", "b"), ("middle", "b", "c"), ("down", "c", "d")):
            write_link(applications, name, reads, writes)
        return parsed()

    def test_all_are_checked_before_the_most_downstream_is_expanded(self, chained: DagBag) -> None:
        dag = chained.dags["expand_chain_shop"]
        checks = {"preflight.up", "preflight.middle", "preflight.down", "preflight.unpaused_dags"}
        assert dag.get_task("down").upstream_task_ids == checks
        assert dag.get_task("middle").upstream_task_ids == {"down"}
        assert dag.get_task("up").upstream_task_ids == {"middle"}

    def test_the_paused_ones_are_named_before_anything_is_touched(self, chained: DagBag) -> None:
        check = chained.dags["expand_chain_shop"].get_task("preflight.unpaused_dags")

        class TaskInstance:
            def get_dag(self, dag_id: str) -> SimpleNamespace:
                return SimpleNamespace(is_paused=dag_id in paused)

        paused = set[str]()
        check.execute({"ti": TaskInstance()})
        paused = {"expand_up", "expand_down"}
        with pytest.raises(Refused, match="expand_down, expand_up, paused"):
            check.execute({"ti": TaskInstance()})

    def test_each_is_expanded_by_its_own_dag_in_a_run_that_can_be_continued(self, chained: DagBag) -> None:
        task = chained.dags["expand_chain_shop"].get_task("middle")
        assert task.trigger_dag_id == "expand_middle"
        assert task.trigger_dag_id in chained.dags
        assert (task.wait_for_completion, task.deferrable, task.reset_dag_run) == (True, True, True)
        assert set(task.conf) <= set(chained.dags["expand_middle"].params)

    @pytest.mark.parametrize(
        ("dag_id", "run_id", "is_dry", "expected"),
        [
            ("expand_chain_shop", "manual__1", False, True),
            ("expand_up", f"manual__1{CHAINED}", True, True),
            ("expand_up", f"manual__1{CHAINED}", False, False),
            ("expand_up", "manual__1", True, False),
        ],
    )
    def test_a_check_knows_whether_readers_will_have_been_expanded_by_then(
        self, chained: DagBag, dag_id: str, run_id: str, *, is_dry: bool, expected: bool
    ) -> None:
        """When a chain has expanded them, the cluster shows it. After a dry run, it never does."""
        task = chained.dags[dag_id].get_task("preflight.up" if "chain" in dag_id else "preflight")
        params = {"target": None, "dry_run": is_dry, "expected_state": "either"}
        task.render_template_fields({"run_id": run_id, "params": params})
        assert str(task.after_readers) == str(expected)

    def test_a_circle_shows_its_error(self, applications: Path) -> None:
        for name, reads, writes in (("one", "b", "c"), ("two", "c", "b")):
            write_link(applications, name, reads, writes)
        dag = parsed().dags["invalid_expand_chain_shop"]
        assert dag.task_ids == ["invalid"]
        assert "feed each other" in (dag.doc_md or "")

    def test_an_input_that_would_grow_under_another_member_shows_its_error(self, applications: Path) -> None:
        for name, reads, writes in (("up", "a", "b"), ("one", "b", "c"), ("two", "b", "d")):
            write_link(applications, name, reads, writes)
        dag = parsed().dags["invalid_expand_chain_shop"]
        assert "the input b, which one grows, and which two reads as well" in (dag.doc_md or "")

    @pytest.mark.parametrize(
        ("text", "is_held"),
        [
            ("application_id: [\nchain: shop\n", True),
            ("application_id: more\nchain: 'shop' # of the web\nunknown: 1\n", True),
            ("application_id: mo", True),
            ("", True),
            ("application_id: [\nchain: other\n", False),
        ],
    )
    @pytest.mark.usefixtures("chained")
    def test_it_is_not_expanded_without_a_member_that_can_not_be_used(
        self, applications: Path, text: str, is_held: bool
    ) -> None:
        (applications / "more.yaml").write_text(text)
        dags = parsed().dags
        assert ("expand_chain_shop" in dags) is not is_held
        assert ("invalid_expand_chain_shop" in dags) is is_held


def test_a_file_that_can_not_be_used_any_more_gives_its_dags_no_other_tasks(applications: Path) -> None:
    """Otherwise a running run would lose its tasks, and a cutover its process."""
    (file,) = applications.glob("orders-app.yaml")
    before = {dag_id for dag_id, dag in parsed().dags.items() if "invalid" not in dag.tags}
    assert {"expand_orders-app", "rollback_orders-app", "bridge_orders-app"} <= before
    file.write_text(file.read_text() + "\nunknown: 1\n")
    after = parsed().dags
    assert after.keys() & before == set()
    assert {dag_id for dag_id, dag in after.items() if dag.task_ids == ["invalid"]} == after.keys()


def test_a_file_that_cannot_be_used_shows_its_error_and_leaves_the_others_alone(applications: Path) -> None:
    (applications / "broken.yaml").write_text("application_id: [")
    dags = parsed().dags
    assert "expand_orders-app" in dags
    assert dags["invalid_expand_broken"].task_ids == ["invalid"]
    assert "broken.yaml" in (dags["invalid_expand_broken"].doc_md or "")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("broken", "application_id: other\nsnapshots: {start_date: 2024-02-30}\n", "which is none"),
        ("a copy of it (2)", "application_id: [", "malformed YAML"),
    ],
    ids=["a value that Python can't make", "a name that no DAG may have"],
)
def test_no_file_takes_the_others_away(applications: Path, name: str, text: str, said: str) -> None:
    (applications / f"{name}.yaml").write_text(text)
    found = parsed()
    assert found.import_errors == {}
    assert "expand_orders-app" in found.dags
    (dag,) = (dag for dag_id, dag in found.dags.items() if dag_id.startswith("invalid_expand_"))
    assert said in (dag.doc_md or "")


ODD: dict[str, Callable[[Path], object]] = {
    "a link to nothing, as Emacs makes it while somebody edits": lambda there: (
        there / ".#orders-app.yaml"
    ).symlink_to("ada@host.1:2"),
    "a link to nothing": lambda there: (there / "gone.yaml").symlink_to("nothing"),
    "a directory": lambda there: (there / "more.yaml").mkdir(),
    "bytes that are no text": lambda there: (there / "bytes.yaml").write_bytes(b"\xff\xfe"),
    "a value of a type that it isn't": lambda there: (there / "odd.yaml").write_text("a: !!bool foo\n"),
    "a moment that is none": lambda there: (there / "odd.yaml").write_text("a: !!timestamp x\n"),
    "lists that are nested too deeply": lambda there: (there / "deep.yaml").write_text("a: " + "[" * 1_200),
}


@pytest.mark.parametrize("case", ODD)
def test_nothing_in_the_directory_takes_the_dags_away(applications: Path, case: str) -> None:
    ODD[case](applications)
    made = all_dags()
    assert {f"{kind}_orders-app" for kind in ("expand", "rollback", "switch", "bridge", "watch")} <= made.keys()


def test_a_file_that_an_editor_hides_is_no_application_file(applications: Path) -> None:
    write_link(applications, "shop", "orders", "b")
    (applications / ".#shop.yaml").symlink_to("ada@host.1:2")
    made = all_dags()
    assert "expand_chain_shop" in made
    assert not [dag_id for dag_id in made if dag_id.startswith("invalid_")]


def test_a_chain_is_held_while_a_file_can_not_be_read(applications: Path) -> None:
    write_link(applications, "shop", "orders", "b")
    (applications / "more.yaml").mkdir()
    assert {"invalid_expand_chain_shop", "invalid_expand_more"} <= all_dags().keys()


def test_each_file_is_read_as_yaml_once_for_all_kinds(applications: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise some dozens of files take longer than Airflow lets an import take."""
    write_link(applications, "shop", "orders", "b")
    (applications / "broken.yaml").write_text("application_id: [")
    read: list[str] = []
    compose = yaml.compose

    def counted(text: str, *arguments: Any, **named: Any) -> Any:
        read.append(text)
        return compose(text, *arguments, **named)

    monkeypatch.setattr(yaml, "compose", counted)
    assert {"expand_orders-app", "expand_shop", "invalid_expand_broken"} <= all_dags().keys()
    assert sorted(read) == sorted(file.read_text() for file in applications.glob("*.yaml"))


def test_a_task_reads_only_its_own_application(applications: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have to end a pause."""
    write_application(applications, application_id="orders-app-2")
    write_application(applications, application_id="other")
    (applications / "broken.yaml").write_text("application_id: [")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "rollback_orders-app-2")
    assert KINDS["rollback"]().keys() == {"rollback_orders-app-2"}
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "rollback_orders-app")
    # Its name is a part of the other one's.
    assert KINDS["rollback"]().keys() == {"rollback_orders-app", "rollback_orders-app-2"}


def test_a_kind_that_can_not_be_made_shows_its_error_and_leaves_the_others(
    applications: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> NoReturn:
        raise OSError("the disk is away")

    monkeypatch.setitem(KINDS, "watch", fail)
    made = all_dags()
    assert "expand_orders-app" in made
    (shown,) = (dag for dag_id, dag in made.items() if dag_id.startswith("invalid_watch"))
    assert "the disk is away" in (shown.doc_md or "")


def test_without_the_directory_airflow_shows_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_RESCALE_APPLICATIONS", "/nonexistent")
    with pytest.raises(InvalidInput, match="found /nonexistent"):
        all_dags()


def test_a_dag_that_airflow_would_refuse_takes_no_other_away(
    applications: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_rescale.core.application.fields._is_cron", lambda _: True)
    write_application(applications, application_id="other", schedule="every day")
    found = parsed()
    assert found.import_errors == {}
    assert {"expand_orders-app", "invalid_expand_other"} <= found.dags.keys()


def test_two_files_of_one_application_are_both_refused(applications: Path) -> None:
    (file,) = applications.glob("orders-app.yaml")
    (applications / "orders-draft.yaml").write_text(file.read_text())
    dags = parsed().dags
    assert "expand_orders-app" not in dags
    for name in ("orders-app", "orders-draft"):
        assert "expected one file per application" in (dags[f"invalid_expand_{name}"].doc_md or "")
