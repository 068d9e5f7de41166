"""The fields that the application files of both runtimes share are declared once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kafka_rescale.core.application.common import ApplicationFile
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import InvalidInput
from kafka_rescale.core.roles import Role
from kafka_rescale.operations.application.load import load_application, load_pipeline_application
from pydantic import ValidationError

from tests.support.application_files import write_application
from tests.support.words_pipeline import write_pipeline

BOTH = (Application, PipelineApplication)
ANOTHER_IDEA = {
    # One file means the lag at which the gate opens. The other means the lag at which a client takes a task over.
    "acceptable_recovery_lag"
}


def test_a_field_that_both_files_have_is_the_base_s() -> None:
    shared = set.intersection(*(set(model.model_fields) for model in BOTH))
    assert shared == {*ApplicationFile.model_fields, *ANOTHER_IDEA}
    narrowed = {
        name for model in BOTH for name in ApplicationFile.model_fields if name in vars(model)["__annotations__"]
    }
    assert narrowed == {"runtime"}


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("schedule", "sometimes", "found 'sometimes'; expected a cron expression"),
        ("kafka_config_files", {"plan": "kafka.json"}, "found a file of role plan; expected files of copy"),
    ],
)
def test_both_files_check_what_they_share(
    model: type[ApplicationFile], field: str, value: object, found: str
) -> None:
    with pytest.raises(ValidationError, match=found):
        model.model_validate({field: value})


@pytest.mark.parametrize(
    ("write", "field"), [(write_application, "schedule"), (write_pipeline, "keep_warm_schedule")]
)
def test_a_dag_with_several_runs_at_a_time_is_not_begun_without_a_pause(
    write: Callable[..., Path], field: str, tmp_path: Path
) -> None:
    """Airflow refuses such a DAG as a whole, because of a limit of its runs that no file can set."""
    file = write(tmp_path, **{field: "@continuous"})
    line = 1 + file.read_text().splitlines().index(f"{field}: '@continuous'")
    load = load_application if write is write_application else load_pipeline_application
    with pytest.raises(InvalidInput, match=f"{file.name}:{line}: {field}: found '@continuous', which only"):
        load(file)


def test_a_pipeline_may_begin_its_runs_one_after_the_other(tmp_path: Path) -> None:
    assert load_pipeline_application(write_pipeline(tmp_path, schedule="@continuous")).schedule == "@continuous"


@pytest.mark.parametrize("model", BOTH)
def test_a_role_without_a_connection_of_its_own_uses_the_application_s(model: type[ApplicationFile]) -> None:
    file = model.model_construct(kafka_conn_id="all", kafka_conn_ids={Role.COPY: "copies"}, kafka_config_files={})
    assert [file.kafka_conn_id_of(role) for role in (Role.COPY, Role.ADMIN)] == ["copies", "all"]
    assert [file.kafka_of_job(role).is_own for role in (Role.COPY, Role.VERIFY)] == [True, False]
