import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * A stateful Kafka Streams instance as small as can be: counts the records of a topic per key. With the setting
 * {@code counts.logging=false} its store has no changelog.
 *
 * <p>Prints every state that it enters. SIGTERM closes it cleanly.
 *
 * <pre>java CountingMember.java SERVERS APPLICATION_ID INPUT OUTPUT STATE_DIRECTORY [name=value]...</pre>
 */
public class CountingMember {
    private CountingMember() {
    }

    public static void main(final String[] arguments) {
        final var settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", arguments[1]);
        settings.put("state.dir", Path.of(arguments[4]).toString());
        for (int i = 5; i < arguments.length; i++) {
            final String[] setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        final var counts = Materialized.<byte[], Long, KeyValueStore<Bytes, byte[]>>as("counts")
            .withKeySerde(Serdes.ByteArray()).withValueSerde(Serdes.Long());
        if ("false".equals(settings.remove("counts.logging"))) {
            counts.withLoggingDisabled();
        }
        final var builder = new StreamsBuilder();
        builder.stream(arguments[2], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .groupByKey()
            .count(counts)
            .toStream()
            .to(arguments[3], Produced.with(Serdes.ByteArray(), Serdes.Long()));
        final var streams = new KafkaStreams(builder.build(settings), settings);
        streams.setStateListener((state, before) -> System.out.println(state));
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
