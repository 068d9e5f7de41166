import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Counts the records of a topic per key and window, in a store that consists of segments. With the setting
 * {@code totals=true}, each task has a second store, which counts per key only.
 */
public final class WindowingMember {
    private WindowingMember() {
    }

    public static void main(final String[] arguments) throws InterruptedException {
        Member.run(arguments, WindowingMember::topology);
    }

    private static Topology topology(final Member member, final Properties settings) {
        final var builder = new StreamsBuilder();
        final var grouped = builder
            .stream(member.input(), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .groupByKey(Grouped.with(Serdes.ByteArray(), Serdes.ByteArray()));
        grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1)))
            .count(Materialized.<byte[], Long, WindowStore<Bytes, byte[]>>as("windows")
                .withKeySerde(Serdes.ByteArray()).withValueSerde(Serdes.Long()));
        if ("true".equals(settings.remove("totals"))) {
            grouped.count(Materialized.<byte[], Long, KeyValueStore<Bytes, byte[]>>as("totals")
                .withKeySerde(Serdes.ByteArray()).withValueSerde(Serdes.Long()));
        }
        return builder.build(settings);
    }
}
