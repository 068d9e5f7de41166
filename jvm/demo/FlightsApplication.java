import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * An ordinary Kafka Streams application over flights and planes: it knows nothing of Kafka Rescale.
 *
 * <p>It has three sub-topologies, and the common kinds of stores. The first sub-topology re-keys flights by
 * aircraft and by airport, and keeps no state. The second joins planes, and keeps totals and sessions per
 * aircraft. The third counts departures per airport and hour.
 *
 * <p>Every aggregate is commutative, and no record is ever late. So an input has one final result, in whatever
 * order and on however many partitions it is processed.
 */
public final class FlightsApplication {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> STRING = Serdes.String();
    private static final Duration RETENTION = Duration.ofDays(400);
    private static final Duration HOUR = Duration.ofHours(1);
    private static final Duration SESSION_GAP = Duration.ofHours(12);

    private FlightsApplication() {}

    public static void main(final String[] arguments) throws IOException, InterruptedException {
        final Map<String, String> options = parse(arguments);
        final int partitions = Integer.parseInt(options.getOrDefault("partitions", "0"));
        final boolean global = "global".equals(options.get("planes"));
        final Topology topology = topology(partitions, global, options.getOrDefault("output-prefix", ""));
        if (options.containsKey("describe")) {
            System.out.print(topology.describe());
            return;
        }
        // Other applications need this time before their start, for a context, a registry or an image that is
        // pulled.
        Thread.sleep(Duration.ofSeconds(Integer.parseInt(options.getOrDefault("startup-seconds", "0"))).toMillis());
        System.exit(run(topology, config(options), onException(options)));
    }

    /**
     * Builds the topology.
     *
     * @param partitions count of the repartition topics; 0 leaves it to Kafka Streams
     * @param global whether the planes are a global table. Every instance has all of it, so the topic of the planes
     *     may keep its partitions while those of the flights change.
     * @param outputPrefix put before the names of the output topics
     */
    static Topology topology(final int partitions, final boolean global, final String outputPrefix) {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> flights =
            builder.stream("flights", Consumed.with(STRING, STRING).withName("flights-source"));
        final KStream<String, String> byAircraft = flights
            .filter((key, flight) -> read(flight).hasNonNull("tailnum"), Named.as("drop-unknown-aircraft"))
            .selectKey((key, flight) -> read(flight).get("tailnum").asText(), Named.as("key-by-aircraft"))
            .repartition(repartitioned("by-aircraft", partitions));
        aircraftTotals(withPlanes(builder, byAircraft, global), outputPrefix + "aircraft-totals-output");
        aircraftSessions(byAircraft, outputPrefix + "aircraft-sessions-output");
        final KStream<String, String> byAirport = flights
            .selectKey((key, flight) -> read(flight).get("origin").asText(), Named.as("key-by-airport"))
            .repartition(repartitioned("by-airport", partitions));
        airportHourly(byAirport, outputPrefix + "airport-hourly-output");
        return builder.build();
    }

    private static Repartitioned<String, String> repartitioned(final String name, final int partitions) {
        final Repartitioned<String, String> plain = Repartitioned.with(STRING, STRING).withName(name);
        return partitions > 0 ? plain.withNumberOfPartitions(partitions) : plain;
    }

    private static KStream<String, String> withPlanes(
            final StreamsBuilder builder, final KStream<String, String> byAircraft, final boolean global) {
        final Consumed<String, String> consumed = Consumed.with(STRING, STRING).withName("planes-table");
        final Materialized<String, String, KeyValueStore<Bytes, byte[]>> store =
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("planes")
                .withKeySerde(STRING).withValueSerde(STRING);
        if (global) {
            final GlobalKTable<String, String> planes = builder.globalTable("planes", consumed, store);
            return byAircraft.leftJoin(
                planes, (aircraft, flight) -> aircraft, FlightsApplication::withPlane, Named.as("join-planes"));
        }
        final KTable<String, String> planes = builder.table("planes", consumed, store);
        return byAircraft.leftJoin(
            planes, FlightsApplication::withPlane, Joined.with(STRING, STRING, STRING, "join-planes"));
    }

    private static void aircraftTotals(final KStream<String, String> flightsWithPlane, final String output) {
        flightsWithPlane
            .groupByKey(Grouped.with("group-by-aircraft", STRING, STRING))
            .aggregate(() -> "{}", (aircraft, flight, total) -> addFlight(read(flight), read(total)),
                Named.as("total-by-aircraft"),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("aircraft-totals")
                    .withKeySerde(STRING).withValueSerde(STRING))
            .toStream(Named.as("aircraft-totals-stream"))
            .to(output, Produced.with(STRING, STRING).withName("aircraft-totals-sink"));
    }

    private static void aircraftSessions(final KStream<String, String> byAircraft, final String output) {
        byAircraft
            .groupByKey(Grouped.with("group-sessions", STRING, STRING))
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(SESSION_GAP, RETENTION.minus(SESSION_GAP)))
            .aggregate(() -> session(0, 0),
                (aircraft, flight, value) -> addSessions(session(1, read(flight).get("distance").asLong()), value),
                (aircraft, left, right) -> addSessions(left, right),
                Named.as("sessions-by-aircraft"),
                Materialized.<String, String, SessionStore<Bytes, byte[]>>as("aircraft-sessions")
                    .withKeySerde(STRING).withValueSerde(STRING).withRetention(RETENTION))
            .toStream(Named.as("aircraft-sessions-stream"))
            .selectKey((key, value) -> key.key() + "@" + key.window().start() + "-" + key.window().end(),
                Named.as("readable-session-key"))
            .to(output, Produced.with(STRING, STRING).withName("aircraft-sessions-sink"));
    }

    private static void airportHourly(final KStream<String, String> byAirport, final String output) {
        byAirport
            .groupByKey(Grouped.with("group-by-airport", STRING, STRING))
            .windowedBy(TimeWindows.ofSizeAndGrace(HOUR, RETENTION.minus(HOUR)))
            .count(Named.as("count-by-airport"),
                Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("airport-hourly")
                    .withKeySerde(STRING).withValueSerde(Serdes.Long()).withRetention(RETENTION))
            .toStream(Named.as("airport-hourly-stream"))
            .selectKey((key, count) -> key.key() + "@" + key.window().start(), Named.as("readable-hour-key"))
            .mapValues(count -> Long.toString(count), Named.as("readable-count"))
            .to(output, Produced.with(STRING, STRING).withName("airport-hourly-sink"));
    }

    private static String withPlane(final String flight, final String plane) {
        final ObjectNode joined = read(flight);
        if (plane != null) {
            joined.set("plane", read(plane));
        }
        return joined.toString();
    }

    private static String addFlight(final JsonNode flight, final JsonNode total) {
        final JsonNode delay = flight.path("arr_delay");
        final JsonNode plane = flight.has("plane") ? flight.get("plane") : total;
        final ObjectNode sum = JSON.createObjectNode();
        sum.put("flights", total.path("flights").asLong() + 1);
        sum.put("distance", total.path("distance").asLong() + flight.get("distance").asLong());
        sum.put("arr_delay", total.path("arr_delay").asLong() + delay.asLong());
        if (delay.isNumber() && total.path("max_arr_delay").isNumber()) {
            sum.put("max_arr_delay", Math.max(delay.asLong(), total.get("max_arr_delay").asLong()));
        } else {
            sum.set("max_arr_delay", delay.isNumber() ? delay : total.get("max_arr_delay"));
        }
        sum.set("manufacturer", plane.get("manufacturer"));
        sum.set("model", plane.get("model"));
        return sum.toString();
    }

    private static String session(final long flights, final long distance) {
        return JSON.createObjectNode().put("flights", flights).put("distance", distance).toString();
    }

    private static String addSessions(final String left, final String right) {
        final JsonNode a = read(left);
        final JsonNode b = read(right);
        return session(a.get("flights").asLong() + b.get("flights").asLong(),
            a.get("distance").asLong() + b.get("distance").asLong());
    }

    private static ObjectNode read(final String json) {
        try {
            return (ObjectNode) JSON.readTree(json);
        } catch (final JsonProcessingException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static StreamThreadExceptionResponse onException(final Map<String, String> options) {
        return StreamThreadExceptionResponse.valueOf(options.getOrDefault("on-exception", "SHUTDOWN_CLIENT"));
    }

    private static int run(
            final Topology topology, final Properties config, final StreamThreadExceptionResponse onException)
            throws InterruptedException {
        final KafkaStreams streams = new KafkaStreams(topology, config);
        final CountDownLatch ended = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            log("state " + before + " -> " + now);
            if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) {
                ended.countDown();
            }
        });
        streams.setUncaughtExceptionHandler(error -> {
            log("a stream thread failed: " + error);
            error.printStackTrace();
            return onException;
        });
        streams.setGlobalStateRestoreListener(new RestoreLog());
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close, "close"));
        streams.start();
        ended.await();
        return streams.state() == KafkaStreams.State.ERROR ? 1 : 0;
    }

    private static final class RestoreLog implements StateRestoreListener {
        @Override
        public void onRestoreStart(
                final TopicPartition partition, final String store, final long start, final long end) {}

        @Override
        public void onBatchRestored(
                final TopicPartition partition, final String store, final long end, final long records) {}

        @Override
        public void onRestoreEnd(final TopicPartition partition, final String store, final long records) {
            log("restored " + records + " records of " + partition);
        }
    }

    private static void log(final String line) {
        System.out.println(Instant.now() + " " + line);
    }

    private static Properties config(final Map<String, String> options) throws IOException {
        final Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, options.getOrDefault("bootstrap-servers", "127.0.0.1:9092"));
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, options.getOrDefault("application-id", "flights"));
        config.put(StreamsConfig.STATE_DIR_CONFIG, options.getOrDefault("state-dir", "flights-state"));
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, options.getOrDefault("guarantee", "at_least_once"));
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, options.getOrDefault("threads", "1"));
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, options.getOrDefault("cache-bytes", "1048576"));
        if (options.containsKey("commit-interval-ms")) {
            config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, options.get("commit-interval-ms"));
        }
        if (options.containsKey("client-supplier")) {
            config.put(StreamsConfig.DEFAULT_CLIENT_SUPPLIER_CONFIG, options.get("client-supplier"));
        }
        if (options.containsKey("config")) {
            try (Reader file = Files.newBufferedReader(Path.of(options.get("config")))) {
                config.load(file);
            }
        }
        return config;
    }

    private static Map<String, String> parse(final String[] arguments) {
        final Map<String, String> options = new HashMap<>();
        for (int i = 0; i < arguments.length; i++) {
            final String name = arguments[i].replaceFirst("^--", "");
            if (name.equals("describe")) {
                options.put(name, "");
            } else if (i + 1 < arguments.length && !name.equals(arguments[i])) {
                options.put(name, arguments[++i]);
            } else {
                throw new IllegalArgumentException("expected --name value, found " + arguments[i]);
            }
        }
        return options;
    }
}
