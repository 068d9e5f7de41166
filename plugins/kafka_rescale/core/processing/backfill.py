"""A past interval that is processed once more, by a separate generation beside the generation at work.

A changelog can't give the state as of the start of the interval: it is compacted, and gives the present state. So
a backfill replays the inputs: it processes all records with times before the end of the interval, in the order of
the log. It writes a result if the time of the result is at or after the start of the interval. It also writes a
result if the time of the record that made it is at or after this start. A late record has a time in the interval,
but lies in the log behind records of later times. Late records belong to the interval, so a backfill reads the
inputs up to their present ends.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.errors import InvalidInput, Refused
from kafka_rescale.core.snapshots.exactness import Coverage
from kafka_rescale.core.topology.topology import Topology
from kafka_rescale.core.values import Value


class Backfill(Value):
    """The interval that is processed once more, and the topics that its results go to.

    :param start_ms: the start of the interval, by the timestamps of records.
    :param end_ms: the end of the interval, exclusive.
    :param history_ms: how long before the start the replay begins. None: it begins at the beginning of the log.
    :param outputs: by the pipeline's own name of an output, the full name of the topic that the backfill writes.
    """

    start_ms: int
    end_ms: int
    history_ms: int | None = None
    outputs: dict[str, str]

    @property
    def replayed_from_ms(self) -> int | None:
        """The time of the first record that the backfill needs. None: it needs all records."""
        return None if self.history_ms is None else self.start_ms - self.history_ms

    def generation(self, application_id: str) -> str:
        """Return the id of the generation: its group's name, and the prefix of transactional ids and topics."""
        return f"{application_id}-backfill-{_compact(self.start_ms)}-{_compact(self.end_ms)}"

    def application(self, generation: str) -> str:
        """Return the id of the application, from the id of a generation of this backfill."""
        return generation.removesuffix(self.generation(""))


def backfill_of(application: PipelineApplication, topology: Topology, start: str, end: str) -> Backfill:
    """Return the backfill of a run for a past interval.

    :param start: the start, in ISO 8601 with an offset, as Airflow renders ``data_interval_start``.
    :param end: the end (exclusive), in the same form.
    :raises InvalidInput: the start or the end can't be read as a time.
    :raises Refused: the file doesn't say where the outputs go, an output would go to a topic that the pipeline
        itself reads or writes, or the interval is empty.
    """
    start_ms, end_ms = _ms(start), _ms(end)
    if start_ms >= end_ms:
        raise Refused(
            "interval of the backfill",
            found=f"{start} to {end}",
            expected="a start before its end",
            remedy="Name both. Runs of a schedule have the interval of the schedule.",
        )
    declared = application.backfill
    outputs = {} if declared is None else declared.outputs
    if missing := sorted(set(topology.outputs) - outputs.keys()):
        raise Refused(
            f"backfill of {application.application_id}",
            found=f"nothing about where {', '.join(missing)} should go",
            expected="`backfill: {outputs: {topic: another topic}}` for every output",
            remedy="Declare them in the application file. What the pipeline has written stays as it is.",
        )
    used = {*topology.inputs, *topology.outputs}
    if shared := sorted({outputs[topic] for topic in topology.outputs} & used):
        raise Refused(
            f"backfill of {application.application_id}",
            found=f"outputs that go to {', '.join(shared)}",
            expected="topics that the pipeline neither reads nor writes",
            remedy="Name other topics under `backfill.outputs`.",
        )
    history = None if declared is None or declared.history_seconds is None else declared.history_seconds * 1000
    wanted = {topic: outputs[topic] for topic in topology.outputs}
    return Backfill(start_ms=start_ms, end_ms=end_ms, history_ms=history, outputs=wanted)


def require_history(source: str, backfill: Backfill, coverage: Coverage, *, is_compacted: bool) -> None:
    """Refuse an input that lacks records which the backfill needs.

    The backfill needs all records that make the results of the interval and the state before it.

    :param source: ``<topic>-<partition>``.
    :param coverage: the coverage of the log from the offset where the replay begins. For a compacted topic, it
        must come from a close reading.
    :raises Refused: records were deleted or compacted away.
    """
    if not (coverage.is_headless or (is_compacted and not coverage.is_whole)):
        return
    since = backfill.replayed_from_ms
    needed = "its beginning" if since is None or is_compacted else _iso(since)
    raise Refused(
        f"backfill of input {source}",
        found=f"a log that begins at offset {coverage.begin}"
        if coverage.is_headless
        else f"records compacted away before offset {coverage.hole_end}",
        expected=f"every record since {needed}, from which the state at the start follows",
        remedy="Choose a later interval. If the state depends only on recent records, as that of windows does, "
        "declare how recent by `backfill.history_seconds`. A compacted topic is always needed from its beginning.",
    )


def first_needed(begin: int, first_since: int | None, *, is_compacted: bool) -> int:
    """Return the offset at which the replay of a partition has to begin.

    If records from there on may have been deleted, the result is below the log start.

    :param begin: the log start.
    :param first_since: the offset of the first remaining record whose time is needed. None: all are needed.
    """
    if first_since is None or is_compacted:
        return 0
    return begin - 1 if first_since == begin > 0 else first_since


def topics_of(topology: Topology, backfill: Backfill | None) -> Collection[str]:
    """Return the inputs and outputs, which have to exist before a run."""
    moved = {} if backfill is None else backfill.outputs
    return {*topology.inputs, *(moved.get(topic, topic) for topic in topology.outputs)}


def _ms(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            "interval of the backfill",
            found=repr(text),
            expected="a start and an end, as ISO 8601",
            remedy="Name both, for example 2026-01-01T00:00:00+00:00.",
        ) from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()


def _compact(at_ms: int) -> str:
    text = f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y%m%dT%H%M%S}"
    return f"{text}.{at_ms % 1000:03d}" if at_ms % 1000 else text
