import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * A stateful instance as small as can be: counts the records of a topic per key. With the setting
 * {@code counts.logging=false} its store has no changelog.
 */
public final class CountingMember {
    private CountingMember() {
    }

    public static void main(final String[] arguments) throws InterruptedException {
        Member.run(arguments, CountingMember::topology);
    }

    private static Topology topology(final Member member, final Properties settings) {
        final var counts = Materialized.<byte[], Long, KeyValueStore<Bytes, byte[]>>as("counts")
            .withKeySerde(Serdes.ByteArray()).withValueSerde(Serdes.Long());
        if ("false".equals(settings.remove("counts.logging"))) {
            counts.withLoggingDisabled();
        }
        final var builder = new StreamsBuilder();
        builder.stream(member.input(), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .groupByKey()
            .count(counts)
            .toStream()
            .to(member.output(), Produced.with(Serdes.ByteArray(), Serdes.Long()));
        return builder.build(settings);
    }
}
