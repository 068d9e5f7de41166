"""The lease: which run may change an application now."""

from __future__ import annotations

from kafka_rescale.core.values import Value


class Lease(Value):
    """The right of one run to change an application.

    :param owner: ``<dag_id>/<run_id>`` of an Airflow run, or ``shell/<host>/<pid>``.
    :param epoch: every acquisition raises it.
    :param expires_at_ms: if the owner can't be asked whether it has ended, the lease is free after this time.
        Every change of the journal renews the lease.
    :param airflow: the Airflow that the owner is a run of; empty if that is not known, or if the owner is no run.
    """

    owner: str
    epoch: int
    target: int
    expires_at_ms: int
    released: bool = False
    airflow: str = ""

    @property
    def holder(self) -> str:
        """Its present holder; empty if it was given back."""
        return "" if self.released else self.owner
