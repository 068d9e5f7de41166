"""Who may change an application now."""

from __future__ import annotations

from kafka_rescale.core.values import Value


class Lease(Value):
    """Who may change this application now.

    :param owner: ``<dag_id>/<run_id>`` of an Airflow run, or ``shell/<host>/<pid>``.
    :param epoch: raised by every acquisition.
    :param expires_at_ms: a lease of an owner that can't be asked is free after this; every change of the journal
        renews it.
    :param airflow: which Airflow the owner is a run of; empty if that is not known, or it is none.
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
