import java.nio.ByteBuffer;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the records of each key twice, in one sub-topology: in a store with logging ({@code totals}), and in a
 * store without ({@code recent}). For every record it writes both counts, in 8 bytes each.
 */
public final class RecentMember {
    private RecentMember() {
    }

    public static void main(final String[] arguments) throws InterruptedException {
        Member.run(arguments, RecentMember::topology);
    }

    private static Topology topology(final Member member, final Properties settings) {
        final var bytes = Serdes.ByteArray();
        final var builder = new StreamsBuilder();
        builder.stream(member.input(), Consumed.with(bytes, bytes))
            .repartition(Repartitioned.<byte[], byte[]>as("by-key").withKeySerde(bytes).withValueSerde(bytes))
            .process(new Counts())
            .to(member.output(), Produced.with(bytes, bytes));
        return builder.build(settings);
    }

    private static final class Counts implements ProcessorSupplier<byte[], byte[], byte[], byte[]> {
        @Override
        public Set<StoreBuilder<?>> stores() {
            return Set.of(store("totals"), store("recent").withLoggingDisabled());
        }

        private static StoreBuilder<KeyValueStore<byte[], Long>> store(final String name) {
            return Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), Serdes.ByteArray(), Serdes.Long());
        }

        @Override
        public Processor<byte[], byte[], byte[], byte[]> get() {
            return new Processor<>() {
                private ProcessorContext<byte[], byte[]> context;
                private KeyValueStore<byte[], Long> totals;
                private KeyValueStore<byte[], Long> recent;

                @Override
                public void init(final ProcessorContext<byte[], byte[]> context) {
                    this.context = context;
                    totals = context.getStateStore("totals");
                    recent = context.getStateStore("recent");
                }

                @Override
                public void process(final Record<byte[], byte[]> record) {
                    final var counts = ByteBuffer.allocate(2 * Long.BYTES)
                        .putLong(addOne(totals, record.key())).putLong(addOne(recent, record.key()));
                    context.forward(record.withValue(counts.array()));
                }
            };
        }

        private static long addOne(final KeyValueStore<byte[], Long> store, final byte[] key) {
            final Long before = store.get(key);
            final long now = before == null ? 1 : before + 1;
            store.put(key, now);
            return now;
        }
    }
}
