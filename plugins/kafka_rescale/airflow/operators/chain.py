"""The operator of a chain of applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from kafka_rescale.core.errors import Refused

if TYPE_CHECKING:
    from airflow.sdk import Context


class UnpausedDagsOperator(BaseOperator):
    """Refuse to begin a chain of which a later DAG could not run.

    :param dag_ids: of the members' expansions.
    """

    def __init__(self, *, dag_ids: Sequence[str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.dag_ids = tuple(dag_ids)

    def execute(self, context: Context) -> None:
        """Ask for every DAG.

        :raises Refused: some are paused; all of them are named.
        """
        paused = [dag_id for dag_id in self.dag_ids if context["ti"].get_dag(dag_id).is_paused]
        if paused:
            raise Refused(
                "chain",
                found=f"{', '.join(paused)}, paused",
                expected="DAGs that can run, for every application of the chain",
                remedy="Unpause them, then clear this task. Nothing has been touched.",
            )
