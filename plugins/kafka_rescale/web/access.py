"""Which applications a user may see. Airflow decides by the user's rights on the expansion DAG."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, status

from kafka_rescale.core.page.summary import dag_of


def permitted(user: Any, application_ids: Collection[str]) -> list[str]:
    """Return the applications that a user may see: those whose expansion DAG shows its runs to this user.

    :param user: The user, as Airflow has authenticated them.
    """
    dags = {dag_of(each): each for each in application_ids}
    teams = DagModel.get_dag_id_to_team_name_mapping(list(dags))
    return [application for dag_id, application in dags.items() if _may_see(user, dag_id, teams.get(dag_id))]


def permitted_application(application_id: str, user: GetUserDep) -> str:
    """Return the application of a request's path.

    :raises HTTPException: The user has no permission. The answer is 404, so that it doesn't even reveal that the
        application exists.
    """
    if not permitted(user, [application_id]):
        raise not_found(application_id)
    return application_id


def not_found(application_id: str) -> HTTPException:
    """Return the answer for an application that doesn't exist, or that the user may not see."""
    detail = (
        f"There is no application {application_id!r}, or you may not see the runs of {dag_of(application_id)}."
    )
    return HTTPException(status.HTTP_404_NOT_FOUND, detail)


def _may_see(user: Any, dag_id: str, team: str | None) -> bool:
    manager = get_auth_manager()
    details = DagDetails(id=dag_id, team_name=team)
    wanted = (None, DagAccessEntity.RUN)
    return all(
        manager.is_authorized_dag(method="GET", access_entity=entity, details=details, user=user)
        for entity in wanted
    )


PermittedApplication = Annotated[str, Depends(permitted_application)]
