import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.kafkarescale.FencedAfterAbort;

/** Prints what producers of {@code FencedAfterAbort} do, one line for each. */
public final class FencedProducers {
    private FencedProducers() {}

    public static void main(final String[] arguments) {
        System.out.println("committed: " + afterwards(Map.of("transactional.id", "thread-1"), false));
        System.out.println("aborted: " + afterwards(Map.of("transactional.id", "thread-1"), true));
        System.out.println("at least once: " + Mocks.isPlain(new FencedAfterAbort(new Mocks()).getProducer(Map.of())));
        final Producer<byte[], byte[]> uninitialized =
            new FencedAfterAbort(new Mocks()).getProducer(Map.of("transactional.id", "thread-1"));
        System.out.println("error: " + errorOf(uninitialized));
    }

    private static String afterwards(final Map<String, Object> config, final boolean aborts) {
        final Producer<byte[], byte[]> producer = new FencedAfterAbort(new Mocks()).getProducer(new HashMap<>(config));
        producer.initTransactions();
        producer.beginTransaction();
        if (aborts) {
            producer.abortTransaction();
        } else {
            producer.commitTransaction();
        }
        try {
            producer.beginTransaction();
            return "begins";
        } catch (final ProducerFencedException error) {
            return "fenced, " + error.getMessage();
        }
    }

    /** An error of the wrapped producer has to come out as it is, because Kafka Streams looks at its class. */
    private static String errorOf(final Producer<byte[], byte[]> producer) {
        try {
            producer.beginTransaction();
            return "none";
        } catch (final RuntimeException error) {
            return error.getClass().getSimpleName();
        }
    }

    private static final class Mocks implements KafkaClientSupplier {
        static boolean isPlain(final Producer<byte[], byte[]> producer) {
            return producer instanceof MockProducer;
        }

        @Override
        public Producer<byte[], byte[]> getProducer(final Map<String, Object> config) {
            return new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer());
        }

        @Override
        public Admin getAdmin(final Map<String, Object> config) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> config) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Consumer<byte[], byte[]> getRestoreConsumer(final Map<String, Object> config) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Consumer<byte[], byte[]> getGlobalConsumer(final Map<String, Object> config) {
            throw new UnsupportedOperationException();
        }
    }
}
