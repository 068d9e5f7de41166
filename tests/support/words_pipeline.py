"""Pipelines for the application files of tests."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import yaml
from kafka_rescale.core.pipeline import STRING, Pipeline, StreamsBuilder

NOT_A_PIPELINE = "something else"


def words(name: str = "by-word", store: str = "counts") -> Pipeline:
    """Two levels: re-keyed by word, counted per word."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", key=STRING, value=STRING)
    by_word = lines.select_key(lambda key, value: value, key=STRING)
    counts = by_word.group_by_key(name=name).count(store=store)
    counts.to_stream().to("counted")
    return builder.build()


def words_of_another_store() -> Pipeline:
    """The same pipeline after an edit of its store."""
    return words(store="totals")


def words_by_another_repartition() -> Pipeline:
    """The same pipeline after an edit of its repartition topic."""
    return words(name="by-term")


def write_pipeline(directory: Path, **changes: Any) -> Path:
    """Write an application file. Fields that are changed to None are left out."""
    declared: dict[str, Any] = {
        "application_id": "words",
        "runtime": "spark",
        "pipeline": "tests.support.words_pipeline:words",
        "num.stream.threads": 2,
        "state.dir": str(directory / "state"),
        **changes,
    }
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{declared['application_id']}.yaml"
    kept = {name: value for name, value in declared.items() if value is not None}
    # The file is renamed into its place, so that readers see either the old file or the new one.
    new = directory / f"{declared['application_id']}.{threading.get_ident()}"
    new.write_text(yaml.safe_dump(kept, sort_keys=False))
    return new.rename(file)
