import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * One application per store type, for tests. It reads {@code left} and {@code right}, keeps the state that
 * {@code --store} names, and writes its results to {@code --output}.
 *
 * <p>If no record is late, the results depend neither on how the two inputs are interleaved, nor on the number of
 * partitions. So tests close windows by a last wave of records that is hours younger.
 */
public final class StoresApplication {
    private static final Serde<String> STRING = Serdes.String();
    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final Duration GRACE = Duration.ofMinutes(30);

    private final StreamsBuilder builder = new StreamsBuilder();
    private final int partitions;
    private final String renamed;
    private final Map<String, String> options;

    /**
     * An application, by the options of its command line.
     *
     * @param partitions count of the repartition topics; 0 for none of these topics
     * @param options {@code renamed}: what the names of a later version of {@code suppress-window} begin with.
     *     {@code left} and {@code right}: the topics to read in place of these. {@code left-pattern}: the pattern to
     *     read in place of {@code left}, unless it is empty. {@code counts}: the repartition topics have the
     *     {@code enforced} count, or the count is {@code derived} from the inputs; with {@code inputs} there are no
     *     repartition topics.
     */
    private StoresApplication(final int partitions, final Map<String, String> options) {
        this.partitions = partitions;
        this.renamed = options.getOrDefault("renamed", "");
        this.options = options;
    }

    public static void main(final String[] arguments) throws InterruptedException {
        final Map<String, String> options = new HashMap<>();
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            options.put(arguments[i].substring(2), arguments[i + 1]);
        }
        final String store = options.get("store");
        final int partitions = Integer.parseInt(options.getOrDefault("partitions", "0"));
        final Topology topology =
            new StoresApplication(partitions, options).topology(store, options.getOrDefault("output", "out"));
        if (options.containsKey("describe")) {
            System.out.print(topology.describe());
            return;
        }
        System.exit(run(topology, config(options)));
    }

    private Topology topology(final String store, final String output) {
        results(store).to(output, Produced.with(STRING, STRING).withName("sink"));
        return builder.build();
    }

    private KStream<String, String> results(final String store) {
        switch (store) {
            case "versioned":
                return table("left", Materialized.<String, String>as(
                    Stores.persistentVersionedKeyValueStore("versions", Duration.ofDays(3650)))).toStream();
            case "inner-join":
                return stream("left").join(stream("right"), (l, r) -> l + "+" + r, windows(), joined());
            case "left-join":
                return stream("left").leftJoin(stream("right"), (l, r) -> l + "+" + r, windows(), joined());
            case "outer-join":
                return stream("left").outerJoin(stream("right"), (l, r) -> l + "+" + r, windows(), joined());
            case "foreign-key":
                return tables().join(table("right", store("right-table")), StoresApplication::foreignKey,
                    (l, r) -> l + "+" + r, TableJoined.as("fk"), store("joined")).toStream();
            case "foreign-key-left":
                return tables().leftJoin(table("right", store("right-table")), StoresApplication::foreignKey,
                    (l, r) -> l + "+" + r, TableJoined.as("fk"), store("joined")).toStream();
            case "joins":
                // One application has a repartition, a foreign-key join and a join by key, one behind the other.
                final KTable<String, String> left = tables();
                return left
                    .join(table("right", store("right-table")), StoresApplication::foreignKey, (l, r) -> l + "+" + r,
                        TableJoined.as("fk"), store("fk-joined"))
                    .join(left, (joined, l) -> joined + "&" + l, Named.as("by-key"), store("joined"))
                    .toStream();
            case "final-window":
                // Closed windows stay in the store. Only the offsets' metadata tells which ones have been emitted.
                return grouped().windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
                    .emitStrategy(EmitStrategy.onWindowClose())
                    .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("counts")
                        .withRetention(Duration.ofDays(3650)))
                    .toStream((key, count) -> key.key() + "@" + key.window().start())
                    .mapValues(count -> Long.toString(count));
            case "suppress-window":
                return grouped().windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
                    .count(Materialized.as(renamed + "counts"))
                    .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())
                        .withName(renamed + "suppressed"))
                    .toStream((key, count) -> key.key() + "@" + key.window().start())
                    .mapValues(count -> Long.toString(count));
            case "suppress-session":
                return grouped().windowedBy(SessionWindows.ofInactivityGapAndGrace(WINDOW, GRACE))
                    .count(Materialized.as("counts"))
                    .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("suppressed"))
                    .toStream((key, count) -> key.key() + "@" + key.window().start() + "-" + key.window().end())
                    .mapValues(count -> Long.toString(count));
            case "suppress":
                return grouped().count(Materialized.as("counts"))
                    .suppress(Suppressed.<String>untilTimeLimit(GRACE, Suppressed.BufferConfig.unbounded())
                        .withName("suppressed"))
                    .toStream().mapValues(count -> Long.toString(count));
            case "processor":
                builder.addStateStore(Stores.keyValueStoreBuilder(
                    Stores.persistentKeyValueStore("buckets"), Serdes.Bytes(), STRING));
                return stream("left").process(Buckets::new, Named.as("count-buckets"), "buckets");
            case "plain":
                builder.addStateStore(Stores.keyValueStoreBuilder(
                    Stores.persistentKeyValueStore("totals"), STRING, STRING));
                builder.addStateStore(Stores.windowStoreBuilder(
                    Stores.persistentWindowStore("windows", Duration.ofDays(1), WINDOW, false), STRING, STRING));
                return stream("left").process(Plain::new, Named.as("count-plainly"), "totals", "windows");
            case "headers":
                return grouped().reduce((old, value) -> value, Materialized.as("latest")).toStream();
            case "grace":
                return stream("left").join(
                    table("right", Materialized.<String, String>as(
                        Stores.persistentVersionedKeyValueStore("right-table", Duration.ofDays(1)))),
                    (l, r) -> l + "+" + r, Joined.with(STRING, STRING, STRING, "grace", GRACE));
            default:
                throw new IllegalArgumentException("no such store: " + store);
        }
    }

    /**
     * With {@code --partitions}, state is behind a repartition topic. So its count need not be that of the input.
     */
    private KStream<String, String> stream(final String topic) {
        final Consumed<String, String> consumed = Consumed.with(STRING, STRING).withName(topic + "-source");
        final String pattern = options.getOrDefault(topic + "-pattern", "");
        final KStream<String, String> input = pattern.isEmpty()
            ? builder.stream(options.getOrDefault(topic, topic), consumed)
            : builder.stream(Pattern.compile(pattern), consumed);
        final String counts = options.getOrDefault("counts", "enforced");
        if (partitions == 0 || counts.equals("inputs")) {
            return input;
        }
        final Repartitioned<String, String> named =
            Repartitioned.with(STRING, STRING).withName(renamed + "by-" + topic);
        return input.repartition(counts.equals("derived") ? named : named.withNumberOfPartitions(partitions));
    }

    private <S extends StateStore> KTable<String, String> table(
            final String topic, final Materialized<String, String, S> store) {
        final KStream<String, String> rows = stream(topic);
        @SuppressWarnings("unchecked")
        final Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept =
            (Materialized<String, String, KeyValueStore<Bytes, byte[]>>) store.withKeySerde(STRING).withValueSerde(STRING);
        // The value "-" deletes, because no record without a value comes through a repartition topic.
        return rows.mapValues(value -> value.equals("-") ? null : value).toTable(Named.as(topic + "-rows"), kept);
    }

    private KTable<String, String> tables() {
        return table("left", store("left-table"));
    }

    private KGroupedStream<String, String> grouped() {
        return stream("left").groupByKey(Grouped.with("grouped", STRING, STRING));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> store(final String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name)
            .withKeySerde(STRING).withValueSerde(STRING);
    }

    private static JoinWindows windows() {
        return JoinWindows.ofTimeDifferenceAndGrace(WINDOW, GRACE);
    }

    private static StreamJoined<String, String, String> joined() {
        return StreamJoined.with(STRING, STRING, STRING).withName("joined").withStoreName("joined");
    }

    /** A left value is {@code <foreign key>|<rest>}; an empty foreign key is none. */
    private static String foreignKey(final String key, final String value) {
        final String found = value.substring(0, value.indexOf('|'));
        return found.isEmpty() ? null : found;
    }

    /** Counts per key and value length in a store of its own, whose keys are the record's key and four bytes. */
    private static final class Buckets implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<Bytes, String> store;

        @Override
        public void init(final ProcessorContext<String, String> processorContext) {
            context = processorContext;
            store = context.getStateStore("buckets");
        }

        @Override
        public void process(final Record<String, String> record) {
            final byte[] key = record.key().getBytes(StandardCharsets.UTF_8);
            final int bucket = record.value().length() % 3;
            final Bytes at = Bytes.wrap(ByteBuffer.allocate(key.length + 4).put(key).putInt(bucket).array());
            final String before = store.get(at);
            final String after = Long.toString(before == null ? 1 : Long.parseLong(before) + 1);
            store.put(at, after);
            context.forward(record.withKey(record.key() + "/" + bucket).withValue(after));
        }
    }

    /** Counts per key, and per key and window, in stores whose values have no timestamp of their own. */
    private static final class Plain implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> totals;
        private WindowStore<String, String> windows;

        @Override
        public void init(final ProcessorContext<String, String> processorContext) {
            context = processorContext;
            totals = context.getStateStore("totals");
            windows = context.getStateStore("windows");
        }

        @Override
        public void process(final Record<String, String> record) {
            final long start = record.timestamp() - record.timestamp() % WINDOW.toMillis();
            final String total = next(totals.get(record.key()));
            final String within = next(windows.fetch(record.key(), start));
            totals.put(record.key(), total);
            windows.put(record.key(), within, start);
            context.forward(record.withValue(total + "/" + within));
        }

        private static String next(final String count) {
            return Long.toString(count == null ? 1 : Long.parseLong(count) + 1);
        }
    }

    private static int run(final Topology topology, final Properties config) throws InterruptedException {
        final KafkaStreams streams = new KafkaStreams(topology, config);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Member.runUntilEnd(streams);
        return streams.state() == KafkaStreams.State.ERROR ? 1 : 0;
    }

    private static Properties config(final Map<String, String> options) {
        final Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, options.get("bootstrap-servers"));
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, options.get("application-id"));
        config.put(StreamsConfig.STATE_DIR_CONFIG, options.get("state-dir"));
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, options.getOrDefault("guarantee", "at_least_once"));
        config.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, options.getOrDefault("protocol", "classic"));
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "200");
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        config.put(InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        if (options.get("store").startsWith("foreign-key") || options.get("store").equals("joins")) {
            // The join reads the right table through its cache. If a row comes and is deleted within one commit
            // interval, the row is joined, and the deletion is not handed on. This stale result has nothing to do
            // with rescaling.
            config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0L);
        }
        if (options.containsKey("session-timeout-ms")) {
            final String timeout = StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG);
            config.put(timeout, options.get("session-timeout-ms"));
        }
        if (options.containsKey("isolation-level") && !"exactly_once_v2".equals(options.get("guarantee"))) {
            final String isolation = StreamsConfig.consumerPrefix(ConsumerConfig.ISOLATION_LEVEL_CONFIG);
            config.put(isolation, options.get("isolation-level"));
        }
        if (options.containsKey("internal-prefix")) {
            config.put(InternalConfig.TOPIC_PREFIX_ALTERNATIVE, options.get("internal-prefix"));
        }
        if ("headers".equals(options.get("store"))) {
            config.put(StreamsConfig.DSL_STORE_FORMAT_CONFIG, StreamsConfig.DSL_STORE_FORMAT_HEADERS);
        }
        return config;
    }
}
