"""The permissions of each role: as few as possible, and they cover everything that adapters name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kafka_rescale.cli.main import main
from kafka_rescale.core.acls.acls import Acl, Operation, Pattern, Resource, command, commands, without_needless
from kafka_rescale.core.acls.missing import EXAMPLE, Right, acl_findings, examples, missing_acls
from kafka_rescale.core.acls.needed import needed_acls, retirement_acls
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.plan.planning import build_plan
from kafka_rescale.core.roles import Role
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.copy.units import units_of
from kafka_rescale.kafka.reading import log_reader, range_reader, sampling
from kafka_rescale.operations.application.load import load_application, topology_of

from tests.support.application_files import CHAIN, write_application
from tests.support.secured import BEFORE, SHOP, TOPICS

TOPIC, GROUP, TRANSACTIONAL_ID = Resource.TOPIC, Resource.GROUP, Resource.TRANSACTIONAL_ID


def acls_of(**changes: Any) -> tuple[Acl, ...]:
    """The permissions that the shop needs."""
    application = Application.model_validate({**SHOP, **changes})
    return needed_acls(application, topology_of(application))


def allowed(role: Role, resource: Resource, name: str, acls: tuple[Acl, ...]) -> set[str]:
    """The operations that a role is allowed on one resource."""
    return {a.operation.value for a in acls if a.role is role and a.pattern.covers(resource, name)}


def plan_of_shop() -> Plan:
    application = Application.model_validate(SHOP)
    counts = dict.fromkeys(TOPICS, BEFORE)
    return build_plan(application, topology_of(application), blue="shop", generation=2, current=counts, target=8)


@pytest.mark.parametrize(
    ("role", "resource", "name", "operations"),
    [
        (Role.PLAN, TOPIC, "orders", {"Describe", "DescribeConfigs"}),
        (Role.PLAN, TOPIC, "customers", {"Read", "DescribeConfigs"}),
        (Role.PLAN, TOPIC, "shop-g2-per-customer-changelog", {"Read", "DescribeConfigs"}),
        (Role.PLAN, TOPIC, "_kafka_rescale", {"Read", "DescribeConfigs"}),
        (Role.PLAN, GROUP, "shop", {"Describe"}),
        (Role.PLAN, TRANSACTIONAL_ID, "kafka-rescale-shop", set()),
        (Role.COPY, TOPIC, "orders", set()),
        (Role.COPY, TOPIC, "totals", set()),
        (Role.COPY, TOPIC, "payments", {"Read", "DescribeConfigs"}),
        (Role.COPY, TOPIC, "payments-p8", {"Read", "Write", "DescribeConfigs"}),
        (Role.COPY, TOPIC, "shop-g2-per-customer-changelog", {"Read", "Write", "AlterConfigs", "Delete"}),
        (Role.COPY, TOPIC, "_kafka_rescale", {"Read", "Write", "DescribeConfigs"}),
        (Role.COPY, GROUP, "shop", set()),
        (Role.COPY, GROUP, "shop-rescale-2", {"Read"}),
        (Role.ADMIN, TOPIC, "orders", {"Read", "Alter", "DescribeConfigs"}),
        (Role.ADMIN, TOPIC, "payments", {"Read", "DescribeConfigs"}),
        (Role.ADMIN, TOPIC, "payments-p8", {"Read", "Create", "AlterConfigs"}),
        (Role.ADMIN, TOPIC, "totals", {"Alter", "DescribeConfigs"}),
        (Role.ADMIN, TOPIC, "shop-g2-per-customer-changelog", {"Read", "Create", "AlterConfigs", "Delete"}),
        (Role.ADMIN, GROUP, "shop-g2-gate", {"Read", "Delete"}),
        (Role.VERIFY, TOPIC, "shop-g2-per-customer-changelog", {"Read", "DescribeConfigs"}),
        (Role.VERIFY, TOPIC, "customers", {"Read", "DescribeConfigs"}),
        (Role.VERIFY, TOPIC, "orders", {"Read"}),
        (Role.VERIFY, TOPIC, "totals", {"Read"}),
        (Role.VERIFY, TRANSACTIONAL_ID, "kafka-rescale-shop/report", {"Write"}),
        (Role.VERIFY, TRANSACTIONAL_ID, "kafka-rescale-shop", set()),
    ],
)
def test_what_a_role_may_do(role: Role, resource: Resource, name: str, operations: set[str]) -> None:
    assert allowed(role, resource, name, acls_of()) == operations


def test_in_place_no_expansion_creates_or_deletes_anything() -> None:
    acls = acls_of(mode="in_place", inputs=IN_PLACE)
    internal = "shop-per-customer-changelog"
    assert allowed(Role.COPY, TOPIC, internal, acls) == {"Read", "Write", "DescribeConfigs"}
    assert allowed(Role.ADMIN, TOPIC, internal, acls) == {"Read", "Alter", "AlterConfigs"}
    assert allowed(Role.COPY, GROUP, "shop", acls) == {"Describe"}
    assert not [a for a in acls if a.operation is Operation.DELETE]
    watch = "kafka-rescale-shop/result/watch"
    assert allowed(Role.ADMIN, TRANSACTIONAL_ID, watch, acls) == {"Write"}


def test_in_place_only_retiring_earlier_generations_deletes_something() -> None:
    """The file says ``in_place`` today, but may have said ``blue_green`` before."""
    internal, groups = Pattern(TOPIC, "shop-", prefixed=True), Pattern(GROUP, "shop-", prefixed=True)
    patterns = (Pattern(GROUP, "shop"), groups, internal)
    assert retiring(mode="in_place", inputs=IN_PLACE) == tuple(
        Acl(Role.ADMIN, pattern, Operation.DELETE) for pattern in patterns
    )
    # To build a generation beside another one needs the same permissions anyway.
    assert retiring() == ()


def retiring(**changes: Any) -> tuple[Acl, ...]:
    """The permissions that the shop needs only to retire earlier generations."""
    application = Application.model_validate({**SHOP, **changes})
    return retirement_acls(application, topology_of(application))


IN_PLACE = [i for i in SHOP["inputs"] if i["policy"] != "repartitioned"]


def test_a_copy_with_a_limit_may_see_the_lag_of_the_inputs_and_any_other_may_not() -> None:
    def seen(**changes: object) -> set[str]:
        application = Application.model_validate({**CHAIN, **changes})
        acls = needed_acls(application, topology_of(application))
        return {a.pattern.name for a in acls if (a.role, a.operation) == (Role.COPY, Operation.DESCRIBE)}

    assert seen(pacing={"bytes_per_second": 1}) - seen() == {"orders", "orders-app"}


def test_no_role_needs_anything_of_other_applications() -> None:
    for acl in acls_of():
        assert not acl.pattern.covers(TOPIC, "shopping-totals-changelog")
        assert not acl.pattern.covers(GROUP, "shopping")
        assert not acl.pattern.covers(TRANSACTIONAL_ID, "kafka-rescale-shopping")


def test_but_the_groups_of_a_neighbour_that_it_stops_and_the_counts_of_its_topics() -> None:
    paused = {"topic": "customers", "policy": "paused", "producers": {"application": "crm"}}
    inputs = [paused if i["topic"] == "customers" else i for i in SHOP["inputs"]]
    acls = acls_of(inputs=inputs)
    assert allowed(Role.ADMIN, GROUP, "crm-g3", acls) == {"Read"}
    assert allowed(Role.ADMIN, TOPIC, "crm-by-region-repartition", acls) == {"Describe", "DescribeConfigs"}


def test_an_internal_prefix_of_its_own_is_the_prefix_of_the_topics() -> None:
    acls = acls_of(internal_topic_prefix="till")
    assert "Write" in allowed(Role.COPY, TOPIC, "till-g2-per-customer-changelog", acls)
    assert allowed(Role.COPY, TOPIC, "shop-g2-per-customer-changelog", acls) == set()


def test_a_successor_without_a_count_is_named_as_it_is() -> None:
    inputs = [{**i, **({"successor": "{topic}-new"} if i["topic"] == "payments" else {})} for i in SHOP["inputs"]]
    assert Pattern(TOPIC, "payments-new") in {a.pattern for a in acls_of(inputs=inputs)}


@pytest.mark.parametrize("policy", ["paused", "unkeyed"])
def test_an_input_that_is_read_under_another_name_needs_its_permissions_there_too(policy: str) -> None:
    """An expansion has moved `payments` to its successor. The file has another policy since, for the way back."""
    inputs = [{**i, **({"policy": policy} if i["topic"] == "payments" else {})} for i in SHOP["inputs"]]
    application = Application.model_validate({**SHOP, "inputs": inputs})
    acls = needed_acls(application, topology_of(application), {"payments": "payments-p8"})
    for role in Role:
        on_successor = allowed(role, TOPIC, "payments-p8", acls)
        assert on_successor == allowed(role, TOPIC, "payments", acls)
    assert "Alter" in allowed(Role.ADMIN, TOPIC, "payments-p8", acls)


def test_a_successor_by_the_pattern_of_the_file_needs_nothing_more() -> None:
    application = Application.model_validate(SHOP)
    topology = topology_of(application)
    assert needed_acls(application, topology, {"payments": "payments-p4"}) == needed_acls(application, topology)


def test_nothing_is_given_twice() -> None:
    acls = acls_of()
    assert [(a, b) for a in acls for b in acls if a != b and a.is_given_by(b)] == []
    read = Acl(Role.PLAN, Pattern(TOPIC, "a-", prefixed=True), Operation.READ)
    needless = [
        Acl(Role.PLAN, Pattern(TOPIC, "a-b"), Operation.READ),
        Acl(Role.PLAN, Pattern(TOPIC, "a-b", prefixed=True), Operation.DESCRIBE),
    ]
    others = [
        Acl(Role.COPY, Pattern(TOPIC, "a-b"), Operation.READ),
        Acl(Role.PLAN, Pattern(GROUP, "a-b"), Operation.READ),
        Acl(Role.PLAN, Pattern(TOPIC, "a-b"), Operation.DESCRIBE_CONFIGS),
        Acl(Role.PLAN, Pattern(TOPIC, "a", prefixed=True), Operation.DESCRIBE),
    ]
    assert set(without_needless([*needless, read, *others])) == {read, *others}


def test_what_the_adapters_name_is_covered() -> None:
    acls, plan = acls_of(), plan_of_shop()
    for unit in units_of((*plan.moves, *plan.bridges)):
        for role in (Role.COPY, Role.ADMIN):
            assert allowed(role, TRANSACTIONAL_ID, unit.transactional_id(plan.green), acls) == {"Write"}
    for group in (plan.copy_group, plan.bridge_group):
        assert allowed(Role.COPY, GROUP, group, acls) == {"Read"}
    readers = {module.SETTINGS["group.id"] for module in (log_reader, range_reader)}
    readers.add(str(sampling._SETTINGS["group.id"]))
    for role in Role:
        for group in readers:
            assert allowed(role, GROUP, str(group), acls) == {"Describe"}


def test_a_missing_permission_is_named_with_the_command_that_gives_it() -> None:
    acl = Acl(Role.COPY, Pattern(TOPIC, "shop-", prefixed=True), Operation.WRITE)
    other = Acl(Role.PLAN, acl.pattern, Operation.WRITE)
    rights = [
        Right(Role.COPY, TOPIC, "shop-a", frozenset({Operation.READ, Operation.WRITE})),
        Right(Role.COPY, TOPIC, "shop-b", frozenset({Operation.READ})),
        Right(Role.PLAN, TOPIC, "shop-b", frozenset({Operation.WRITE})),
    ]
    assert list(missing_acls([acl, other], rights)) == [acl]
    (finding,) = acl_findings([acl, other], rights, dict.fromkeys(Role, "User:CN=copy,O=X Y"), "h:9")
    assert str(finding) == (
        "permissions of User:CN=copy,O=X Y (role copy): found no Write on topic 'shop-' and what begins with it; "
        "expected the ACLs that `python -m kafka_rescale acls FILE` prints. Grant it: kafka-acls.sh "
        "--bootstrap-server h:9 --add --allow-principal 'User:CN=copy,O=X Y' --operation Write --topic shop- "
        "--resource-pattern-type prefixed"
    )


def test_what_brokers_were_not_asked_about_is_not_said_to_be_missing() -> None:
    acls = [Acl(Role.ADMIN, Pattern(TOPIC, "x"), o) for o in (Operation.CREATE, Operation.WRITE)]
    absent = Right(Role.ADMIN, TOPIC, "x", frozenset(), frozenset({Operation.CREATE}))
    assert list(missing_acls(acls, [absent])) == acls[:1]


def test_roles_with_one_principal_are_told_once() -> None:
    pattern = Pattern(TOPIC, "_kafka_rescale")
    acls = [Acl(role, pattern, Operation.READ) for role in Role]
    rights = [Right(role, TOPIC, "_kafka_rescale", frozenset()) for role in Role]
    assert len(acl_findings(acls, rights, dict.fromkeys(Role, "User:all"), "h:9")) == 1
    assert len(acl_findings(acls, rights, {role: f"User:{role}" for role in Role}, "h:9")) == 4
    assert commands(acls, dict.fromkeys(Role, "User:all"), "h:9") == [command("User:all", acls[:1], "h:9")]


def test_a_prefix_of_topics_is_asked_about_by_those_that_exist() -> None:
    acls = [
        Acl(Role.PLAN, Pattern(TOPIC, "shop-", prefixed=True), Operation.READ),
        Acl(Role.PLAN, Pattern(TOPIC, "orders"), Operation.READ),
        Acl(Role.PLAN, Pattern(GROUP, "shop-", prefixed=True), Operation.READ),
    ]
    assert examples(acls, ["orders", "shop-a", "totals"]) == {
        TOPIC: ["orders", "shop-a"],
        GROUP: [f"shop-{EXAMPLE}"],
        TRANSACTIONAL_ID: [],
        Resource.CLUSTER: [],
    }


class TestCommand:
    def test_it_prints_a_table_and_the_commands(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = str(write_application(tmp_path))
        assert main(["acls", file, "--principal", "User:one", "--principal-copy", "User:two"]) == 0
        printed = capsys.readouterr().out
        assert "kafka-acls.sh --bootstrap-server localhost:9092 --add --allow-principal User:two" in printed
        assert "User:kafka-rescale-plan" not in printed
        assert "AlterConfigs, Create, Delete, Read" in printed

    def test_it_says_that_it_does_not_know_the_names_that_an_expansion_has_given_to_inputs(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["acls", str(write_application(tmp_path))]) == 0
        assert (
            "# If an expansion has moved an input to a successor, that topic may need more permissions than "
            "these: preflight names them.\n"
        ) in capsys.readouterr().out

    def test_it_prints_json(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = str(write_application(tmp_path))
        assert main(["acls", file, "--bootstrap-server", "k:9", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert {
            "role": "verify",
            "principal": "User:kafka-rescale-verify",
            "resource": "transactional-id",
            "name": "kafka-rescale-orders-app/report",
            "pattern": "literal",
            "operation": "Write",
        } in printed["acls"]
        assert all(line.startswith("kafka-acls.sh --bootstrap-server k:9 --add ") for line in printed["commands"])

    def test_it_prints_apart_what_only_tells_the_free_space(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = str(write_application(tmp_path))
        assert main(["acls", file]) == 0
        shown = capsys.readouterr().out
        assert (
            "Only for preflight and the copy to watch the free space of the brokers, which is unknown without it"
            in shown
        )
        assert shown.strip().splitlines()[-1].endswith(" --operation Describe --cluster")
        assert main(["acls", file, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert "cluster" not in {acl["resource"] for acl in printed["acls"]}
        found = [(acl["role"], acl["resource"], acl["operation"]) for acl in printed["disk_space"]["acls"]]
        assert found == [("plan", "cluster", "Describe"), ("copy", "cluster", "Describe")]

    @pytest.mark.parametrize("changes", [{"mode": "in_place"}, {"free_disk_percent": None}])
    def test_where_no_copy_rests_for_a_disk_only_preflight_asks_for_the_space(
        self, changes: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["acls", str(write_application(tmp_path, **changes)), "--json"]) == 0
        (only,) = json.loads(capsys.readouterr().out)["disk_space"]["acls"]
        assert (only["role"], only["operation"]) == ("plan", "Describe")

    def test_in_place_it_prints_apart_what_only_retire_needs(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = str(write_application(tmp_path, mode="in_place"))
        assert main(["acls", file]) == 0
        shown = capsys.readouterr().out
        title = "Only for retire_orders-app, while generations from before the growth exist"
        assert title in shown
        *_, last = shown.strip().splitlines()
        assert " --operation Delete --topic orders-app- " in last
        assert main(["acls", file, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert "Delete" not in {acl["operation"] for acl in printed["acls"]}
        assert {acl["operation"] for acl in printed["retire"]["acls"]} == {"Delete"}
        assert printed["retire"]["commands"] == shown.strip().splitlines()[-3:]
        assert main(["acls", str(write_application(tmp_path)), "--json"]) == 0
        assert "retire" not in json.loads(capsys.readouterr().out)


class TestConnections:
    def test_a_role_has_its_own_connection_or_the_one_of_all(self, tmp_path: Path) -> None:
        file = write_application(tmp_path, kafka_conn_id="all", kafka_conn_ids={"admin": "kafka_admin"})
        application = load_application(file)
        assert [application.kafka_conn_id_of(role) for role in Role] == ["all", "all", "kafka_admin", "all"]

    def test_an_unknown_role_is_refused_by_name(self, tmp_path: Path) -> None:
        with pytest.raises(Exception, match=r"'plan', 'copy', 'admin' or 'verify'"):
            load_application(write_application(tmp_path, kafka_conn_ids={"reader": "x"}))

    @pytest.mark.parametrize(
        ("settings", "principal"),
        [
            ({"sasl.username": "alice"}, "User:alice"),
            ({"ssl.certificate.location": "/absent.pem"}, "User:<subject of /absent.pem>"),
            ({}, "User:<principal of the connection>"),
        ],
    )
    def test_the_principal_is_named_as_far_as_it_is_known(self, settings: dict[str, str], principal: str) -> None:
        assert KafkaConnection({"bootstrap.servers": "h:9", **settings}).principal == principal
