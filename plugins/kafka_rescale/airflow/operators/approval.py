"""The approval of a person, if the run asks for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.exceptions import HITLRejectException
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context

from kafka_rescale.airflow.hooks.rescale import KafkaRescaleHook
from kafka_rescale.airflow.lag_gate import phase_of
from kafka_rescale.airflow.markdown import (
    copied_markdown,
    lag_table,
    lag_verdict,
    proven_markdown,
    rehearsed_markdown,
    waiting_markdown,
)
from kafka_rescale.airflow.page_link import ApplicationPageLink
from kafka_rescale.airflow.retries import APPROVAL_RETRY_POLICY
from kafka_rescale.airflow.runs import GATE_TASK, PLAN_TASK, PREWARM_TASK, PROVE_TASK, REHEARSE_TASK, owner_of
from kafka_rescale.airflow.shown_question import about_markdown, refuse_earlier_question
from kafka_rescale.core.application.streams import Mode
from kafka_rescale.core.control.journal import AFTER_PROMOTION, BLUE_STOPPED, Phase
from kafka_rescale.core.errors import ClusterOutage, NotLetIn, Outage, RescaleError, Unreadable, UnsafeState
from kafka_rescale.core.expansion.prewarming import outlook
from kafka_rescale.core.expansion.switch_words import approved
from kafka_rescale.core.plan.plan import Plan
from kafka_rescale.core.roles import Role

if TYPE_CHECKING:
    from airflow.providers.standard.triggers.hitl import HITLTriggerEventSuccessPayload

    from kafka_rescale.core.application.streams import Application
    from kafka_rescale.core.control.switch import Switch
    from kafka_rescale.kafka.client.connection import KafkaConnection

APPROVAL_FORMS = (frozenset({"at"}), frozenset({"when", "at"}))
"""The fields of the form without windows in the file, and with windows."""
COPYING = frozenset({"restore", "warm_up"})


class OptionalApprovalOperator(ApprovalOperator):
    """
    Ask a person to approve, if the run's param says so. Otherwise succeed at once.

    A rejection fails the task, and so does a missing answer when the time is over. Then the run fails and is
    rolled back. If a rejection only skipped the next tasks, the run would end as a success.

    The text begins with the evidence: the proof of the copies, how near they are, and the pause to expect. Then
    it names the partitions that are furthest behind and the amount that was copied, and links to the page. All of
    that is narrow enough for Airflow's column.

    :param enabled_by: name of the DAG's boolean param that switches the approval on
    :param cutover_of: base name of the application; once its cutover has begun, the operator doesn't ask
    :param kafka_config_id: id of the Airflow connection that ``cutover_of`` is read with
    :param response_timeout: how long to wait for the answer
    """

    ui_color = "#e6d9f2"
    body: str | None
    operator_extra_links = (*ApprovalOperator.operator_extra_links, ApplicationPageLink())

    def __init__(
        self,
        *,
        enabled_by: str,
        cutover_of: str | None = None,
        kafka_config_id: str = "",
        response_timeout: timedelta = timedelta(hours=24),
        **kwargs: Any,
    ) -> None:
        kwargs = {**kwargs, "retry_policy": APPROVAL_RETRY_POLICY}
        super().__init__(fail_on_reject=True, defaults=[self.REJECT], response_timeout=response_timeout, **kwargs)
        self.enabled_by = enabled_by
        self.cutover_of = cutover_of
        self.kafka_config_id = kafka_config_id

    def execute(self, context: Context) -> Any:
        """Ask, but only if the param is on and the cutover has not begun yet."""
        if not context["params"][self.enabled_by]:
            self.log.info("Not asked: param %s is off.", self.enabled_by)
            return None
        if (phase := self._begun()) is not None:
            # This run must end the pause of an earlier run. No generation would run while it waited for a person.
            self.log.info("Not asked: the cutover has already begun, phase %s.", phase)
            return None
        found = (
            *self._evidence(context),
            self._when(context),
            self._copied(context),
            self.body,
            self._page(context),
            self._about(context),
        )
        self.body = "\n\n".join(filter(None, found))
        refuse_earlier_question(self, context)
        return super().execute(context)

    def _when(self, context: Context) -> str:
        """Return the part of the question about the time of the cutover; empty if there is no such part."""
        return ""

    def _about(self, context: Context) -> str:
        """Return when the question is asked, and about which plan; empty without a plan."""
        plan = context["ti"].xcom_pull(task_ids=PLAN_TASK)
        return about_markdown(Plan.model_validate(plan).fingerprint, int(time.time() * 1000)) if plan else ""

    def _begun(self) -> Phase | None:
        if self.cutover_of is None:
            return None
        phase = phase_of(KafkaRescaleHook(kafka_config_id=self.kafka_config_id).connection(), self.cutover_of)
        return phase if phase in {*BLUE_STOPPED, *AFTER_PROMOTION} else None

    def _copied(self, context: Context) -> str:
        jobs = sorted(t for t in self.get_flat_relative_ids(upstream=True) if t.rpartition(".")[2] in COPYING)
        results = {job: context["ti"].xcom_pull(task_ids=job) for job in jobs}
        return copied_markdown({job: result for job, result in results.items() if result})

    def _evidence(self, context: Context) -> tuple[str, ...]:
        """Return the proof, the lag, the pause to expect and the furthest partitions; nothing without copies."""
        before, pull = self.get_flat_relative_ids(upstream=True), context["ti"].xcom_pull
        if REHEARSE_TASK in before:
            return (rehearsed_markdown(pull(task_ids=REHEARSE_TASK) or {}),)
        if GATE_TASK not in before:
            return ()
        gate, plan = pull(task_ids=GATE_TASK) or {}, pull(task_ids=PLAN_TASK)
        not_copied = Plan.model_validate(plan).not_copied if plan else ()
        proof = proven_markdown(pull(task_ids=PROVE_TASK) or {}, time.time(), not_copied)
        return proof, lag_verdict(gate), outlook(pull(task_ids=PREWARM_TASK)), lag_table(gate)

    def _page(self, context: Context) -> str:
        link = ApplicationPageLink()
        return f"[{link.name}: its present state]({link.get_link(self, ti_key=context['ti'])})"


class CutoverApprovalOperator(OptionalApprovalOperator):
    """
    Ask a person to approve the cutover: now, in a window of the application file, or at a time that they name. The
    question has the results of earlier tasks with the ids `gate_all`, `prove`, `prewarm`, `rehearse` and `plan`.

    While nobody answers, ``catch_up`` keeps the copies near, until ``max_wait_seconds`` of the file have passed.
    Then the run ends, and the copies stay for the next run.

    :param application_file: path of the application file, read again when the task runs (templated)
    """

    template_fields = (*OptionalApprovalOperator.template_fields, "application_file")

    def __init__(self, *, application_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.application_file = application_file
        self._switch: Switch | None = None

    def _when(self, context: Context) -> str:
        from kafka_rescale.operations.expansion.switch import begin_wait

        application, connection = self._opened()
        switch = begin_wait(application, connection, owner=owner_of(context), asks=True)
        now_ms = int(time.time() * 1000)
        # A task that asks again, because it was killed, does not get the whole time again.
        self.response_timeout = timedelta(milliseconds=max(1000, switch.until_ms - now_ms))
        self._switch = switch
        return waiting_markdown(switch, now_ms)

    def _about(self, context: Context) -> str:
        now_ms, switch = int(time.time() * 1000), self._switch
        return about_markdown(switch.plan, now_ms, switch.attempt) if switch else ""

    def _evidence(self, context: Context) -> tuple[str, ...]:
        """Return the evidence, and say which part is missing: a question without a proof must show that."""
        found, before = super()._evidence(context), self.get_flat_relative_ids(upstream=True)
        sources = {} if REHEARSE_TASK in before else {GATE_TASK: "lag", PROVE_TASK: "proof"}
        missing = {task: what for task, what in sources.items() if task not in before}
        if not missing:
            return found
        what, is_are = " and no ".join(missing.values()), "is" if len(missing) == 1 else "are"
        tasks = " and ".join(f"`{task}`" for task in missing)
        return f"**No {what} {is_are} shown here**: this DAG has no task {tasks} before this one.", *found

    def validate_params_input(self, params_input: Mapping[str, Any]) -> None:
        """Check the fields of an answer. The form may be older than the file, which may have got or lost windows.

        Airflow keeps the form that it has shown first, and an answer to it must not end a run of days.
        """
        if set(params_input) not in APPROVAL_FORMS:
            super().validate_params_input(params_input)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Record the time that the answer names. If nobody has answered, ask again if the limit was raised.

        Airflow keeps the limit from when it was asked, and can't be told another one.

        :raises UnsafeState: nobody has answered in time.
        """
        if event.get("chosen_options") == [self.REJECT] and not event.get("responded_by_user"):
            application, connection = self._opened()
            if _is_waited_for(application, connection):
                self.log.info("Nobody has answered, but the limit of the wait was raised meanwhile: asked again.")
                return self.execute(context)
            raise UnsafeState(
                f"approval of the cutover of {self.cutover_of}",
                found="no answer within max_wait_seconds of the application file",
                expected="an answer",
                remedy=f"{_left_by(application)} Trigger the expansion again: it goes on from there.",
            )
        try:
            answer = super().execute_complete(context, event)
        except HITLRejectException as rejection:
            raise HITLRejectException(f"{rejection}. {self._left()}") from rejection
        self._keep(answer, owner_of(context))
        return answer

    def _keep(self, answer: HITLTriggerEventSuccessPayload, owner: str) -> None:
        """Note the answer in the control topic. If the brokers or the file are away, wait for them.

        Airflow's next try would ask again, and take the answer away.

        :param owner: the run that holds the lease.
        :raises RescaleError: the answer could not be noted until the end of the longest wait, or is refused.
        """
        from kafka_rescale.kafka.client.waiting import within
        from kafka_rescale.operations.cutover.persistence import insist

        who = (answer["responded_by_user"] or {}).get("name") or "somebody"
        insist(
            lambda: self._note(answer, who, owner),
            lambda: f"the answer of {who} is kept: waiting until it can be noted in the control topic",
            seconds_left=within(self.response_timeout.total_seconds() if self.response_timeout else 0),
            again=(Outage, Unreadable),
        )

    def _note(self, answer: HITLTriggerEventSuccessPayload, who: str, owner: str) -> None:
        from kafka_rescale.operations.expansion.switch import approve

        try:
            application, connection = self._opened()
            order, not_before_ms, remark = approved(answer["params_input"], application.cutover_windows)
            if remark:
                self.log.error("%s The switch waits for another order.", remark)
            approve(
                application,
                connection,
                owner=owner,
                by=f"{who} ({owner})",
                order=order,
                not_before_ms=not_before_ms,
                answered_ms=int(answer["responded_at"].timestamp() * 1000),
            )
        except NotLetIn as error:
            # Each call reads the connection anew, so credentials that a person mends are found without a next try.
            raise ClusterOutage.of(error.complaint) from error

    def _left(self) -> str:
        """Return what this run leaves. A rejection stands, whether the file can be read or not."""
        from kafka_rescale.operations.application.load import load_application

        try:
            return _left_by(load_application(self.application_file))
        except RescaleError:
            return "Nothing was stopped."

    def _opened(self) -> tuple[Application, KafkaConnection]:
        from kafka_rescale.operations.application.load import load_application

        application = load_application(self.application_file)
        hook = KafkaRescaleHook(kafka_config_id=application.kafka_conn_id_of(Role.ADMIN))
        return application, hook.connection()


def _is_waited_for(application: Application, connection: KafkaConnection) -> bool:
    """Return whether the limit that the control topic, the page and ``status`` have is still ahead."""
    from kafka_rescale.core.control.switch import Switch
    from kafka_rescale.kafka.control.control_topic import ControlTopic

    state = ControlTopic(connection, application.application_id).read()
    journal = state.journal
    return journal is not None and Switch.of(journal, state.switch).until_ms > time.time() * 1000


def _left_by(application: Application) -> str:
    """Return what a run leaves that ends before its cutover. Only a growth can't be undone."""
    copies = "" if application.mode is Mode.IN_PLACE else ", and the copies stay"
    told = f"Nothing was stopped{copies}."
    if grown := [output.topic for output in application.outputs if output.partitions is not None]:
        return f"{told} Outputs that have grown for it ({', '.join(grown)}) keep their partitions."
    return told
