import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * A link of a chain of applications. Keys are strings, and values are longs.
 *
 * <p>With {@code sum} or {@code max}, it keeps the sum or the largest value of every key, and writes each change
 * of it. With {@code order}, it expects the values 0, 1, 2, … of every key, and writes each of them. Once a key
 * gets another value than the next, it writes the smallest long for every further value of that key.
 *
 * <pre>java LinkApplication APPLICATION_ID SERVERS INPUT OUTPUT STATE_DIRECTORY sum|max|order</pre>
 */
public final class LinkApplication {
    private LinkApplication() {
    }

    public static void main(String[] arguments) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[0]);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[1]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put("auto.offset.reset", "earliest");
        // The number of partitions of the output may change while this runs.
        properties.put("producer.metadata.max.age.ms", "1000");

        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, Long> grouped = builder.stream(arguments[2], Consumed.with(Serdes.String(), Serdes.Long()))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.Long()));
        values(grouped, arguments[5], properties)
                .toStream()
                .to(arguments[3], Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(30))));
        streams.start();
    }

    private static KTable<String, Long> values(
            KGroupedStream<String, Long> grouped, String does, Properties properties) {
        if (does.equals("order")) {
            // Without a cache, it writes a result for every single record.
            properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
            return grouped.aggregate(
                    () -> -1L,
                    (key, value, last) -> value == last + 1 ? value : Long.valueOf(Long.MIN_VALUE),
                    Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("values")
                            .withKeySerde(Serdes.String())
                            .withValueSerde(Serdes.Long()));
        }
        boolean sum = does.equals("sum");
        return grouped.reduce((old, value) -> sum ? old + value : Math.max(old, value), Materialized.as("values"));
    }
}
