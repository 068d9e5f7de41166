"""What a question is about that Airflow shows. Of one run, it always shows the first question."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.expansion.switch_wait import utc

if TYPE_CHECKING:
    from airflow.providers.standard.operators.hitl import HITLOperator
    from airflow.sdk import Context

log = logging.getLogger(__name__)

FINGERPRINT_LENGTH = 8
_ABOUT = re.compile(r"\*Asked .{10,40} about ((?:attempt \d+ of )?plan \w+)\.\*")


def about_markdown(plan: str, now_ms: int, attempt: int | None = None) -> str:
    """Return the sentence that says when a question was asked, and about what.

    :param plan: Fingerprint of the plan.
    :param now_ms: Wall clock.
    :param attempt: Number of the attempt in the journal; None before there is one.
    """
    of = "" if attempt is None else f"attempt {attempt} of "
    return f"*Asked {utc(now_ms)} about {of}plan {plan[:FINGERPRINT_LENGTH]}.*"


def refuse_earlier_question(operator: HITLOperator, context: Context) -> None:
    """Make sure that a person will see a question about the present attempt and plan.

    Airflow keeps the text that a task of a run has asked first, however often the task or the run is cleared. A
    text of the same attempt and plan may be old: it says when it was asked, and has a link to the present state.

    :param operator: The operator, with the text that it is about to ask.
    :raises UnsafeState: Airflow shows a question about another attempt or plan.
    """
    shown, asked = _about(_shown(operator, context)), _about(operator.body or "")
    if shown and asked and shown != asked:
        raise UnsafeState(
            f"question of {operator.task_id}",
            found=f"a question about {shown}, which Airflow shows again because this run has asked it before",
            expected=f"a question about {asked}",
            remedy="Nothing was stopped. Trigger the expansion again instead of clearing its run: a new run asks "
            "anew, and goes on with the copies. Of a chain, trigger the chain again.",
        )


def _about(text: str) -> str:
    """Return what a text is about; empty if it does not say so, as texts of earlier versions."""
    found = _ABOUT.search(text)
    return found.group(1) if found else ""


def _shown(operator: HITLOperator, context: Context) -> str:
    """Return the text that Airflow shows if the operator asks; empty if Airflow doesn't tell."""
    try:
        from airflow.sdk.api.datamodels._generated import HITLUser
        from airflow.sdk.execution_time.comms import CreateHITLDetailPayload, HITLDetailRequestResult
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

        # The same request as the operator's own, which throws the answer away. The first request is what is kept.
        kept = SUPERVISOR_COMMS.send(
            CreateHITLDetailPayload(
                ti_id=context["task_instance"].id,
                options=operator.options,
                subject=operator.subject,
                body=operator.body,
                defaults=operator.defaults,
                multiple=operator.multiple,
                params=operator.serialized_params,
                assigned_users=[HITLUser(**user) for user in operator.assigned_users or []],
            )
        )
    except Exception as error:
        log.warning("The question that Airflow shows is unknown: %s", error)
        return ""
    return (kept.body or "") if isinstance(kept, HITLDetailRequestResult) else ""
