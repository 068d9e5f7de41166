"""A Kafka Streams instance of the streams protocol (KIP-1071), as small as can be."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_rescale.embedded.jars import java_command

SOURCE = """
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
public class Member {
    public static void main(String[] args) {
        var settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", args[0], "application.id", args[1], "state.dir", args[3],
            "group.protocol", "streams", "default.key.serde", Serdes.ByteArraySerde.class.getName(),
            "default.value.serde", Serdes.ByteArraySerde.class.getName()));
        var builder = new StreamsBuilder();
        builder.stream(args[2]).foreach((key, value) -> { });
        var streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((state, before) -> System.out.println(state));
        streams.start();
    }
}
"""


@contextmanager
def streams_member(servers: str, application_id: str, topic: str, directory: Path) -> Iterator[None]:
    """A running instance while the block lasts; killed at its end."""
    source = directory / "Member.java"
    source.write_text(SOURCE)
    command = java_command(str(source), servers, application_id, topic, str(directory / "state"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        assert any(line.strip() == "RUNNING" for line in process.stdout)
        yield
    finally:
        process.kill()
        process.wait()
