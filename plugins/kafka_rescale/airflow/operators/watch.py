"""The operator that watches an application for autoscaling (KIP-878)."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context
from airflow.sdk.bases.skipmixin import SkipMixin

from kafka_rescale.airflow.metrics import report
from kafka_rescale.airflow.operators.base import RescaleOperator
from kafka_rescale.airflow.runs import airflow_id, owner_of, run_state


class WatchOperator(RescaleOperator, SkipMixin):
    """Compare the partition counts of inputs and internal topics. Skip the expansion unless it is due."""

    inherits_from_skipmixin = True

    def execute(self, context: Context) -> dict[str, Any]:
        """Return ``outcome`` and ``reason``; if an expansion is due, also ``run_id``, ``target``, ``approval``."""
        from kafka_rescale.kafka.client.waiting import now_ms
        from kafka_rescale.operations.application.load import topology_of
        from kafka_rescale.operations.watch import watch

        application = self.application()
        watched = watch(
            application,
            topology_of(application),
            self.connection(application),
            by=owner_of(context),
            attempt=context["ti"].try_number,
            run_state=run_state,
            now_ms=now_ms(),
            airflow=airflow_id(),
        )
        decision = watched.decision
        report(application, watched.observed.parallelism, decision.record)
        if decision.error is not None:
            raise decision.error
        log = self.log.info if decision.is_quiet else self.log.warning
        log("%s: %s", decision.outcome, decision.reason)
        found: dict[str, Any] = {"outcome": str(decision.outcome), "reason": decision.reason}
        if watched.just_gave_up:
            found["just_gave_up"] = True
        if decision.trigger is None:
            context["ti"].xcom_push(key="return_value", value=found)  # skip() leaves by an exception
            self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
            return found
        trigger = decision.trigger
        return {**found, "run_id": trigger.run_id, "target": trigger.target, "approval": trigger.approval}
