"""The main commands. They check, show and verify like tasks of the DAG, but without Airflow."""

from __future__ import annotations

import os
import socket
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kafka_rescale.cli.aborted import lost
from kafka_rescale.cli.advice import with_advice
from kafka_rescale.cli.bridge import bridge
from kafka_rescale.cli.connections import connections_of_others, opened
from kafka_rescale.cli.declared import described_pipeline, permissions, validated
from kafka_rescale.cli.exit_codes import FINDINGS
from kafka_rescale.cli.group import look_at_group
from kafka_rescale.cli.history import past
from kafka_rescale.cli.options import AsJson, Config, File, OfRole, Principal
from kafka_rescale.cli.output import Document, show
from kafka_rescale.cli.own_files import own_files
from kafka_rescale.cli.people import people
from kafka_rescale.cli.pipeline_commands import pipelines
from kafka_rescale.cli.pipelines import pipeline_status
from kafka_rescale.cli.views import cluster_view, plan_view, status_view
from kafka_rescale.core.acls.needed import needed_acls
from kafka_rescale.core.application.lifecycles import ManualLifecycle
from kafka_rescale.core.application.runtimes import SPARK
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.control.journal import Phase
from kafka_rescale.core.control.lease import Lease
from kafka_rescale.core.expansion.cutover_steps import cutover_steps
from kafka_rescale.core.expansion.silent_jobs import with_silent_jobs
from kafka_rescale.core.expansion.switch_wait import told_switch
from kafka_rescale.core.plan.sizing import recommended_target
from kafka_rescale.core.preflight.expected_state import ExpectedState
from kafka_rescale.core.roles import Role
from kafka_rescale.core.verify.report_text import render
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin
from kafka_rescale.kafka.admin.describe import describe as describe_cluster
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.control.control_topic import ControlTopic
from kafka_rescale.kafka.copy.bridging import with_live_bridge
from kafka_rescale.operations.application.load import runtime_of, topology_of
from kafka_rescale.operations.expansion.stages import lags
from kafka_rescale.operations.preflight.overreach import overreach
from kafka_rescale.operations.preflight.preflight import preflight
from kafka_rescale.operations.preflight.sizing import advise

app = typer.Typer(
    help="Inspect applications. Most commands change nothing. These do: verify, accept, postpone, cut-over-now, "
    "cancel, pace, pause and resume write to the control topic; stopped removes members from a consumer group; "
    "add-stream-thread, remove-stream-thread, remove-client, start-client, expand-processors and set-offset "
    "change a pipeline.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(people)
app.add_typer(pipelines)
app.add_typer(own_files)
app.add_typer(bridge)
app.add_typer(past)
app.add_typer(lost)


@app.command()
def validate(file: File, as_json: AsJson = False) -> None:
    """Check an application file and import the pipeline that it names. Needs no cluster."""
    show(validated(file), as_json)


@app.command()
def acls(
    file: File,
    principal: Annotated[
        str, typer.Option(help="One principal for all roles. Default: User:kafka-rescale-ROLE.")
    ] = "",
    principal_plan: Principal = "",
    principal_copy: Principal = "",
    principal_admin: Principal = "",
    principal_verify: Principal = "",
    bootstrap_server: Annotated[
        str, typer.Option(help="The address that the printed commands use.")
    ] = "localhost:9092",
    as_json: AsJson = False,
) -> None:
    """Show the permissions that each role needs, and the commands that grant them. Needs no cluster."""
    own = {
        Role.PLAN: principal_plan,
        Role.COPY: principal_copy,
        Role.ADMIN: principal_admin,
        Role.VERIFY: principal_verify,
    }
    principals = {role: own[role] or principal or f"User:kafka-rescale-{role}" for role in Role}
    show(permissions(file, principals, bootstrap_server), as_json)


@app.command()
def describe(file: File, config: Config = None, as_json: AsJson = False) -> None:
    """Show the topics with their partition counts, stores, the group and its lag; for a pipeline its topology."""
    if runtime_of(file) == SPARK:
        show(described_pipeline(file), as_json)
        return
    application, connection = opened(file, config)
    control = ControlTopic(connection, application.application_id).read()
    running = control.generations.running if control.generations else application.application_id
    topology = topology_of(application)
    found = describe_cluster(ClusterAdmin(connection), application, topology, control.generations)
    renamed = control.generations.inputs if control.generations else {}
    show(cluster_view(application, topology, found, running, renamed), as_json)


@app.command()
def plan(
    file: File,
    target: Annotated[
        int | None, typer.Option(min=1, help="Wanted partition count. Default: that of the file.")
    ] = None,
    recommend: Annotated[
        bool, typer.Option("--recommend", help="Measure the load, recommend a target, and plan for it.")
    ] = False,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds to measure.")] = 60.0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Stream threads to plan for. Default: as many as run now.")
    ] = None,
    expected: Annotated[
        ExpectedState, typer.Option(help="Refuse if the application is not in this state.")
    ] = ExpectedState.EITHER,
    config: Config = None,
    config_copy: OfRole = None,
    config_admin: OfRole = None,
    config_verify: OfRole = None,
    as_json: AsJson = False,
) -> None:
    """Check everything and show what an expansion would do."""
    application, connection = opened(file, config)
    configs = {Role.COPY: config_copy, Role.ADMIN: config_admin, Role.VERIFY: config_verify}
    others, unchecked = connections_of_others(application, config, configs)
    topology = topology_of(application)
    advice = advise(application, topology, connection, seconds=seconds, threads=threads) if recommend else ()
    result = preflight(
        application,
        topology,
        connection,
        target=target or recommended_target(advice) or application.partitions,
        owner=f"shell/{socket.gethostname()}/{os.getpid()}",
        now_ms=now_ms(),
        owner_is_finished=partial(_is_finished, connection, application.application_id),
        expected=expected,
        others=others,
        runs_commands=False,
    )
    wide = overreach(file, application.application_id, needed_acls(application, topology))
    remarks = [*filter(None, [unchecked, _not_looked_at(application)]), *map(str, wide)]
    steps = cutover_steps(result.plan, application) if result.plan is not None else ()
    document = plan_view(result.plan, [*result.messages, *remarks], steps, result.predicted)
    show(with_advice(document, advice) if recommend else document, as_json)


def _is_finished(connection: KafkaConnection, application_id: str, _: Lease) -> bool | None:
    """Return whether the work that a lease protects has ended.

    The journal decides that, because a shell can't ask Airflow about the run that owns the lease.
    """
    journal = ControlTopic(connection, application_id).read().journal
    return True if journal is not None and not journal.in_progress else None


def _not_looked_at(application: Application) -> str:
    """Return a remark on the checks that only an Airflow worker can make; empty for a manual lifecycle."""
    if isinstance(application.lifecycle, ManualLifecycle):
        return ""
    return "lifecycle: its commands were not looked at here. The preflight task checks them on its own machine."


@app.command()
def status(
    file: File,
    config: Config = None,
    picture: Annotated[
        Path | None, typer.Option(help="For a pipeline: the file to draw its assignment into, as SVG.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the generation, phase, group, lease, lags and results; for a pipeline its clients and their tasks."""
    if runtime_of(file) == SPARK:
        show(pipeline_status(file, config, picture), as_json)
        return
    application, connection = opened(file, config)
    found = with_live_bridge(connection, ControlTopic(connection, application.application_id).read())
    control, journal = with_silent_jobs(found, now_ms()), found.journal
    copying = journal is not None and journal.phase is Phase.WARMING and not journal.plan.is_in_place
    progress = lags(connection, journal.plan, None) if journal is not None and copying else []
    group = look_at_group(application, connection, control, now_ms())
    show(status_view(application, control, progress, told_switch(control, now_ms()), group), as_json)


@app.command()
def verify(
    file: File,
    config: Config = None,
    master: Annotated[str, typer.Option(help="Spark master to run on.")] = "local[*]",
    as_json: AsJson = False,
) -> None:
    """Run a Spark job that compares the whole state of the new generation with the previous one."""
    from kafka_rescale.cli.spark import run_verify

    application, connection = opened(file, config, Role.VERIFY)
    report = run_verify(application, connection, master)
    show(Document(data=report.model_dump(mode="json"), text=render(report)), as_json)
    if not report.passed:
        raise typer.Exit(FINDINGS)
