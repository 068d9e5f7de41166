"""A pipeline whose results reveal every lost, doubled or reordered record: each hashes all records before it.

``tests.support.processing.folding_pipeline:of_<name>`` reads ``<name>`` and writes ``<name>-folded``.
"""

from __future__ import annotations

import zlib

from kafka_rescale.core.pipeline import BYTES, Pipeline, StreamsBuilder

STORE = "folds"


def fold(key: bytes, value: bytes, folded: bytes) -> bytes:
    """Return the number of records so far, and the hash of all of them in their order."""
    count, _, digest = folded.partition(b":")
    return b"%d:%08x" % (int(count) + 1, zlib.crc32(value, int(digest, 16)))


def pipeline_of(topic: str) -> Pipeline:
    builder = StreamsBuilder()
    moves = builder.stream(topic, key=BYTES, value=BYTES)
    folded = moves.group_by_key().aggregate(lambda: b"0:0", fold, store=STORE, value=BYTES)
    folded.to_stream().to(f"{topic}-folded")
    return builder.build()


def __getattr__(name: str) -> Pipeline:
    if not name.startswith("of_"):
        raise AttributeError(name)
    return pipeline_of(name.removeprefix("of_"))
