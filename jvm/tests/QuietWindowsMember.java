import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Passes each record of the input on to the output, as it is. Beside that, it counts the records of a second
 * input, {@code <input>-quiet}, within windows. As long as this input is empty, the stores of these windows have
 * no segment.
 */
public final class QuietWindowsMember {
    private static final Duration WINDOW = Duration.ofHours(1);

    private QuietWindowsMember() {
    }

    public static void main(final String[] arguments) throws InterruptedException {
        Member.run(arguments, QuietWindowsMember::topology);
    }

    private static Topology topology(final Member member, final Properties settings) {
        final var builder = new StreamsBuilder();
        final var bytes = Consumed.with(Serdes.ByteArray(), Serdes.ByteArray());
        builder.stream(member.input(), bytes)
            .to(member.output(), Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        builder.stream(member.input() + "-quiet", bytes)
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeWithNoGrace(WINDOW))
            .count(Materialized.<byte[], Long, WindowStore<Bytes, byte[]>>as("counts")
                .withKeySerde(Serdes.ByteArray()).withValueSerde(Serdes.Long()));
        return builder.build(settings);
    }
}
