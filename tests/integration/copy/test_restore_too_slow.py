"""A restore whose copies will be too old when they end says so while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka_rescale.kafka.copy import deadline
from kafka_rescale.spark.copy.restore import restore
from kafka_rescale.spark.jobs.arguments import Arguments
from kafka_rescale.spark.jobs.job import Job

from tests.integration.spark_job_helpers import RUN
from tests.support.changelogs import append, placed
from tests.support.expansion.copied import copy_of_two_stores
from tests.support.expansion.expanded import BEFORE, STORES
from tests.support.mutations import Client

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def test_it_is_in_the_result_of_the_job_that_runs(
    client: Client, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copy_of_two_stores(client, unique)
    records = [record for _, record in copied.blue_records("totals")]
    append(client, copied.topic(copied.application, "totals"), placed(records, STORES["totals"], BEFORE))
    # Any pace is measured at once, and is too slow.
    monkeypatch.setattr(deadline, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(deadline, "NEAR", 0.0)
    told: list[str] = []

    def beaten(job: Job, action: Callable[[], Any], beat: Callable[[], None], **_: Any) -> Any:
        done = action()
        beat()
        told.append(job.control.read().results[job.key].detail)
        return done

    monkeypatch.setattr(Job, "run_beside", beaten)
    for stage in range(1, len(copied.plan.stages) + 1):
        restore(Job("restore", Arguments(copied.application, RUN, 1, stage=stage), copied.connection))

    assert any("keeps deletions for 86,400 s (delete.retention.ms)" in each for each in told), told
