import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaClientSupplier;

/**
 * Gives out a producer that begins no transaction after it has aborted one. It says that it is fenced.
 *
 * <p>With exactly-once, all tasks of a stream thread share a transaction. Kafka Streams aborts it when it closes one
 * task dirty, and lets the others go on behind the records whose results were aborted. If the producer is fenced, the
 * thread gives up all of its tasks, makes a new producer, and begins again at the committed offsets.
 */
public final class FencedAfterAbort implements KafkaClientSupplier {
    @Override
    public Producer<byte[], byte[]> getProducer(final Map<String, Object> config) {
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer()) {
            private boolean aborted;

            @Override
            public void abortTransaction() {
                aborted = true;
                super.abortTransaction();
            }

            @Override
            public void beginTransaction() {
                if (aborted) {
                    throw new ProducerFencedException("Other tasks may have had results in the aborted transaction.");
                }
                super.beginTransaction();
            }
        };
    }

    @Override
    public Admin getAdmin(final Map<String, Object> config) {
        return Admin.create(config);
    }

    @Override
    public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> config) {
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override
    public Consumer<byte[], byte[]> getRestoreConsumer(final Map<String, Object> config) {
        return getConsumer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getGlobalConsumer(final Map<String, Object> config) {
        return getConsumer(config);
    }
}
