import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * An instance that writes by itself: every 200 ms it puts a value into its store. It prints {@code PUT}, or
 * {@code REFUSED} if that fails. With the setting {@code puts.swallow=true}, it goes on after a failure. With
 * {@code puts.cache=true}, the store is cached.
 */
public final class PunctuatingMember {
    private PunctuatingMember() {
    }

    public static void main(final String[] arguments) throws InterruptedException {
        Member.run(arguments, PunctuatingMember::topology);
    }

    static Topology topology(final Member member, final Properties settings) {
        final boolean swallow = "true".equals(settings.remove("puts.swallow"));
        final var store = Stores.keyValueStoreBuilder(
            Stores.persistentKeyValueStore("ticks"), Serdes.String(), Serdes.Long());
        if ("true".equals(settings.remove("puts.cache"))) {
            store.withCachingEnabled();
        }
        return new Topology()
            .addSource("input", new ByteArrayDeserializer(), new ByteArrayDeserializer(), member.input())
            .addProcessor("ticker", () -> new Ticker(swallow), "input")
            .addStateStore(store, "ticker");
    }

    private static final class Ticker implements Processor<byte[], byte[], Void, Void> {
        private final boolean swallow;

        Ticker(final boolean swallow) {
            this.swallow = swallow;
        }

        @Override
        public void init(final ProcessorContext<Void, Void> context) {
            final KeyValueStore<String, Long> ticks = context.getStateStore("ticks");
            context.schedule(Duration.ofMillis(200), PunctuationType.WALL_CLOCK_TIME, now -> {
                try {
                    ticks.put("now", now);
                    System.out.println("PUT");
                } catch (final RuntimeException refusal) {
                    System.out.println("REFUSED");
                    if (!swallow) {
                        throw refusal;
                    }
                }
            });
        }

        @Override
        public void process(final Record<byte[], byte[]> record) {
        }
    }
}
