import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * A stateful instance that is as small as possible: it counts the records of a topic per key. With the setting
 * {@code counts.logging=false}, its store has no changelog. With {@code pattern}, it reads every topic whose name
 * matches that, instead of the input.
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
        final var bytes = Consumed.with(Serdes.ByteArray(), Serdes.ByteArray());
        final var pattern = (String) settings.remove("pattern");
        final var records = pattern == null
            ? builder.stream(member.input(), bytes)
            : builder.stream(Pattern.compile(pattern), bytes);
        records.groupByKey()
            .count(counts)
            .toStream()
            .to(member.output(), Produced.with(Serdes.ByteArray(), Serdes.Long()));
        return builder.build(settings);
    }
}
