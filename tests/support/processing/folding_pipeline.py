"""A pipeline whose results reveal every lost, doubled or reordered record: each hashes all records before it.

``tests.support.processing.folding_pipeline:of_<name>`` reads ``<name>`` and writes ``<name>-folded``.
``behind_another_of_<name>`` is the same program after an edit: another stream, which is counted, stands in front.
``stateless_of_<name>`` is a program before its first store. ``merged_of_<name>`` reads ``<name>-more`` as well,
and folds behind a repartition topic.
"""

from __future__ import annotations

import zlib

from kafka_rescale.core.pipeline import BYTES, Pipeline, StreamsBuilder

STORE = "folds"


def fold(key: bytes, value: bytes, folded: bytes) -> bytes:
    """Return the number of records so far, and the hash of all of them in their order."""
    count, _, digest = folded.partition(b":")
    return b"%d:%08x" % (int(count) + 1, zlib.crc32(value, int(digest, 16)))


def pipeline_of(topic: str, program: str = "") -> Pipeline:
    builder = StreamsBuilder()
    if program == "behind_another_":
        builder.stream(f"{topic}-another", key=BYTES, value=BYTES).group_by_key().count(store="others")
    topics = (topic, f"{topic}-more") if program == "merged_" else (topic,)
    moves = builder.stream(*topics, key=BYTES, value=BYTES)
    if program == "stateless_":
        moves.to(f"{topic}-folded")
        return builder.build()
    if program == "merged_":
        moves = moves.select_key(lambda key, value: key)
    folded = moves.group_by_key().aggregate(lambda: b"0:0", fold, store=STORE, value=BYTES)
    folded.to_stream().to(f"{topic}-folded")
    return builder.build()


def __getattr__(name: str) -> Pipeline:
    program, found, topic = name.partition("of_")
    if not found or program not in {"", "behind_another_", "stateless_", "merged_"}:
        raise AttributeError(name)
    return pipeline_of(topic, program)
