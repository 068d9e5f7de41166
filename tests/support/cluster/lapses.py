"""A broker that has just started and does not know the topics yet."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

import pytest
from kafka_rescale.kafka.admin.cluster_admin import ClusterAdmin


def forget(monkeypatch: pytest.MonkeyPatch, question: str, times: int) -> None:
    """Let the next answers to a question contain no topic.

    :param question: a method of ``ClusterAdmin`` that takes names of topics.
    """
    real, answers = getattr(ClusterAdmin, question), chain(repeat(False, times), repeat(True))

    def answer(admin: ClusterAdmin, names: Iterable[str]) -> Any:
        return real(admin, names) if next(answers) else {}

    monkeypatch.setattr(ClusterAdmin, question, answer)
