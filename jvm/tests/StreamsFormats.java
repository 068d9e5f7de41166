import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.SessionWindowedSerializer;
import org.apache.kafka.streams.kstream.TimeWindowedSerializer;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.kstream.internals.WindowedStreamPartitioner;
import org.apache.kafka.streams.kstream.internals.foreignkeyjoin.CombinedKeySchema;
import org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionWrapper;
import org.apache.kafka.streams.kstream.internals.foreignkeyjoin.SubscriptionWrapperSerde;
import org.apache.kafka.streams.processor.internals.DefaultStreamPartitioner;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.state.internals.LeftOrRightValue;
import org.apache.kafka.streams.state.internals.LeftOrRightValueSerializer;
import org.apache.kafka.streams.state.internals.PrefixedWindowKeySchemas.TimeFirstWindowKeySchema;
import org.apache.kafka.streams.state.internals.SessionKeySchema;
import org.apache.kafka.streams.state.internals.TimestampedKeyAndJoinSide;
import org.apache.kafka.streams.state.internals.WindowKeySchema;

/**
 * Writes what Kafka Streams itself writes, for tests that compare it with what this project reads and writes.
 *
 * <p>It calls Kafka Streams' own serializers and partitioners with plain bytes. It reaches those that are
 * package-private by reflection.
 */
public final class StreamsFormats {
    private static final Serializer<byte[]> BYTES = new ByteArraySerializer();
    private static final Serde<byte[]> BYTES_SERDE = Serdes.ByteArray();
    private static final String TOPIC = "topic";
    private static final String BUFFER_VALUE = "org.apache.kafka.streams.state.internals.BufferValue";
    private static final String JOIN_SIDE =
        "org.apache.kafka.streams.state.internals.TimestampedKeyAndJoinSideSerializer";

    private StreamsFormats() {
    }

    /** Returns a key of a store of windows; {@code sequence} tells records of a join's window apart. */
    public static byte[] window(final byte[] key, final long start, final int sequence) {
        return WindowKeySchema.toStoreKeyBinary(Bytes.wrap(key), start, sequence).get();
    }

    /** Returns a key of a store of sessions. */
    public static byte[] session(final byte[] key, final long start, final long end) {
        return SessionKeySchema.toBinary(Bytes.wrap(key), start, end).get();
    }

    /** Returns a key of the store in which an outer join of streams keeps records without a partner. */
    @SuppressWarnings("unchecked")
    public static byte[] outerJoin(final byte[] key, final long time, final boolean left) throws Exception {
        final Constructor<?> constructor = Class.forName(JOIN_SIDE).getDeclaredConstructor(Serializer.class);
        constructor.setAccessible(true);
        final TimestampedKeyAndJoinSide<byte[]> side = left
            ? TimestampedKeyAndJoinSide.makeLeft(key, time) : TimestampedKeyAndJoinSide.makeRight(key, time);
        final Object serializer = constructor.newInstance(BYTES);
        return ((Serializer<TimestampedKeyAndJoinSide<byte[]>>) serializer)
            .serialize(TOPIC, new RecordHeaders(), side);
    }

    /** Returns a value of that store: the list of all records of one key, time and side. */
    @SuppressWarnings("unchecked")
    public static byte[] outerJoinList(final List<byte[]> values, final boolean left) {
        final LeftOrRightValueSerializer<byte[], byte[]> element = new LeftOrRightValueSerializer<>(BYTES, BYTES);
        final List<byte[]> elements = new ArrayList<>();
        for (final byte[] value : values) {
            final LeftOrRightValue<byte[], byte[]> side =
                left ? LeftOrRightValue.makeLeftValue(value) : LeftOrRightValue.makeRightValue(value);
            elements.add(element.serialize(TOPIC, new RecordHeaders(), side));
        }
        return Serdes.ListSerde(ArrayList.class, BYTES_SERDE).serializer().serialize(TOPIC, new RecordHeaders(), elements);
    }

    /** Returns a key of the store of subscriptions of a foreign-key join. */
    public static byte[] subscriptionKey(final byte[] foreignKey, final byte[] primaryKey) throws Exception {
        final CombinedKeySchema<byte[], byte[]> schema =
            new CombinedKeySchema<>(() -> TOPIC, BYTES_SERDE, () -> TOPIC, BYTES_SERDE);
        final Method toBytes =
            CombinedKeySchema.class.getDeclaredMethod("toBytes", Object.class, Object.class, Headers.class);
        toBytes.setAccessible(true);
        return ((Bytes) toBytes.invoke(schema, foreignKey, primaryKey, new RecordHeaders())).get();
    }

    /**
     * Returns a subscription, as a foreign-key join sends it and keeps it.
     *
     * @param hashed whether it has a hash of the left row
     * @param instruction number of a {@code SubscriptionWrapper.Instruction}
     * @param version of the format
     * @param partition of the left row
     */
    public static byte[] wrapper(
            final boolean hashed, final int instruction, final byte[] primaryKey, final int version, final int partition) {
        final long[] hash = hashed ? new long[] {1, 2} : null;
        final SubscriptionWrapper<byte[]> wrapper = new SubscriptionWrapper<>(
            hash, SubscriptionWrapper.Instruction.fromValue((byte) instruction), primaryKey, (byte) version, partition);
        try (Serializer<SubscriptionWrapper<byte[]>> serializer = wrapperSerde().serializer()) {
            serializer.configure(version == 0 ? Map.of(StreamsConfig.UPGRADE_FROM_CONFIG, "3.3") : Map.of(), false);
            return serializer.serialize(TOPIC, new RecordHeaders(), wrapper);
        }
    }

    /** Returns the partition that Kafka Streams reads from a subscription; -1 if there is none. */
    public static int primaryPartition(final byte[] wrapper) {
        final Integer partition =
            wrapperSerde().deserializer().deserialize(TOPIC, new RecordHeaders(), wrapper).primaryPartition();
        return partition == null ? -1 : partition;
    }

    /** Returns the key of the left row that Kafka Streams reads from a subscription. */
    public static byte[] primaryKey(final byte[] wrapper) {
        return wrapperSerde().deserializer().deserialize(TOPIC, new RecordHeaders(), wrapper).primaryKey();
    }

    private static SubscriptionWrapperSerde<byte[]> wrapperSerde() {
        return new SubscriptionWrapperSerde<>(() -> TOPIC, BYTES_SERDE);
    }

    /** Returns the key that {@code suppress} logs for a window. */
    public static byte[] suppressedWindow(final byte[] key, final long start) {
        return new TimeWindowedSerializer<>(BYTES).serialize(TOPIC, new RecordHeaders(), windowed(key, start));
    }

    /** Returns the key that {@code suppress} logs for a session. */
    public static byte[] suppressedSession(final byte[] key, final long start, final long end) {
        return new SessionWindowedSerializer<>(BYTES)
            .serialize(TOPIC, new RecordHeaders(), new Windowed<>(key, new SessionWindow(start, end)));
    }

    /** Returns the value that {@code suppress} logs: what it holds back, and the time of that. */
    public static byte[] suppressedValue(
            final byte[] prior, final byte[] old, final byte[] value, final long time, final byte[] header) throws Exception {
        final Constructor<?> constructor = Class.forName(BUFFER_VALUE)
            .getDeclaredConstructor(byte[].class, byte[].class, byte[].class, ProcessorRecordContext.class);
        constructor.setAccessible(true);
        final RecordHeaders headers = new RecordHeaders();
        headers.add("h", header);
        final Object buffered =
            constructor.newInstance(prior, old, value, new ProcessorRecordContext(time, 7, 1, TOPIC, headers));
        final Method serialize = buffered.getClass().getDeclaredMethod("serialize", int.class);
        serialize.setAccessible(true);
        return ((ByteBuffer) serialize.invoke(buffered, Long.BYTES)).putLong(time).array();
    }

    /** Returns the key that the buffer of a stream-table join with a grace period logs. */
    public static byte[] graceBuffer(final byte[] key, final long time, final int sequence) {
        return TimeFirstWindowKeySchema.toStoreKeyBinary(Bytes.wrap(key), time, sequence).get();
    }

    /**
     * Returns the key in the store of that buffer after a restore ({@code RocksDBTimeOrderedKeyValueBytesStore}).
     */
    public static byte[] graceBufferRestored(final byte[] logged) {
        return TimeFirstWindowKeySchema.fromNonPrefixWindowKey(logged);
    }

    /** Returns the partition to which Kafka Streams sends a record with this key. */
    public static int partition(final byte[] key, final int partitions) {
        return new DefaultStreamPartitioner<byte[], Object>(BYTES)
            .partitions(TOPIC, key, null, partitions).orElseThrow().iterator().next();
    }

    /** Returns the partition to which Kafka Streams sends a record with this windowed key. */
    public static int windowedPartition(final byte[] key, final long start, final int partitions) {
        return new WindowedStreamPartitioner<byte[], Object>(new TimeWindowedSerializer<>(BYTES))
            .partitions(TOPIC, windowed(key, start), null, partitions).orElseThrow().iterator().next();
    }

    private static Windowed<byte[]> windowed(final byte[] key, final long start) {
        return new Windowed<>(key, new TimeWindow(start, start + 1));
    }
}
