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

    def is_of(self, owner: str, airflow: str) -> bool:
        """Whether an owner has it, or had it before it was given back.

        Two Airflows may have runs of the same name. If one of the two ids is not known, the name alone decides.

        :param airflow: the Airflow that the owner is a run of; empty if that is not known.
        """
        return self.owner == owner and not self.is_of_another(airflow)

    def is_of_another(self, airflow: str) -> bool:
        """Whether it is known that the lease was taken in another Airflow."""
        return bool(self.airflow and airflow) and self.airflow != airflow
