package org.kafkarescale;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps Kafka Streams from losing records with exactly-once, when it closes one task of a thread dirty.
 *
 * <p>All tasks of a stream thread share a transaction (KIP-447). If Kafka Streams closes a corrupted task, it
 * aborts this transaction, and so the results of the other tasks as well. Before that it commits the other tasks,
 * but not while a rebalance is in progress. It does not set them back either. So their next commit goes past
 * records whose results were aborted ({@code TaskManager.handleCorruption}).
 *
 * <p>A producer of this supplier begins no transaction after it has aborted one. It says that it is fenced. Kafka
 * Streams then gives up all tasks of the thread, makes a new producer, and begins again at the committed offsets.
 *
 * <p>Set it by configuration alone: {@code default.client.supplier=org.kafkarescale.FencedAfterAbort} (KIP-884,
 * Kafka Streams 3.5), with this jar on the class path. {@link HoldGate} does the same for the clients that it
 * hands out.
 */
public class FencedAfterAbort implements KafkaClientSupplier, Configurable {
    /** Class of the supplier whose clients are handed out; by default that of Kafka Streams. */
    public static final String SUPPLIER = "kafka.rescale.fenced.supplier";

    private static final Logger LOG = LoggerFactory.getLogger(FencedAfterAbort.class);

    private KafkaClientSupplier wrapped;

    /** For the configuration, which names the class. */
    public FencedAfterAbort() {}

    /**
     * For a program that hands a supplier of its own to {@code KafkaStreams}.
     *
     * @param wrapped supplier whose clients are handed out
     */
    public FencedAfterAbort(final KafkaClientSupplier wrapped) {
        this.wrapped = wrapped;
    }

    @Override
    public void configure(final Map<String, ?> config) {
        if (wrapped == null) {
            wrapped = Settings.supplier(config, SUPPLIER, FencedAfterAbort.class);
        }
    }

    @Override
    public Admin getAdmin(final Map<String, Object> config) {
        return wrapped().getAdmin(config);
    }

    @Override
    public Producer<byte[], byte[]> getProducer(final Map<String, Object> config) {
        return guarded(wrapped().getProducer(config), config);
    }

    @Override
    public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> config) {
        return wrapped().getConsumer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getRestoreConsumer(final Map<String, Object> config) {
        return wrapped().getRestoreConsumer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getGlobalConsumer(final Map<String, Object> config) {
        return wrapped().getGlobalConsumer(config);
    }

    private KafkaClientSupplier wrapped() {
        if (wrapped == null) {
            throw new IllegalStateException("found no client supplier in FencedAfterAbort; expected configure(...) to "
                + "be called first. Call it with the configuration that KafkaStreams gets, or hand a supplier over");
        }
        return wrapped;
    }

    /**
     * Returns a producer that begins no transaction after it has aborted one.
     *
     * <p>It is a proxy, because the methods of {@code Producer} differ between versions of Kafka's clients. All
     * other methods are passed on as they are.
     *
     * @param producer to pass the calls on to
     * @param config that of the producer; without a transactional id, the producer itself is returned
     * @return the producer to use
     */
    @SuppressWarnings("unchecked")
    static Producer<byte[], byte[]> guarded(
            final Producer<byte[], byte[]> producer, final Map<String, Object> config) {
        final Object id = config.get(ProducerConfig.TRANSACTIONAL_ID_CONFIG);
        if (id == null) {
            return producer;
        }
        final AtomicBoolean aborted = new AtomicBoolean();
        return (Producer<byte[], byte[]>) Proxy.newProxyInstance(
            Producer.class.getClassLoader(), new Class<?>[] {Producer.class}, (proxy, method, arguments) -> {
                if (method.getName().equals("beginTransaction") && aborted.get()) {
                    LOG.warn("{} has aborted a transaction, which may have had results of other tasks: the thread "
                        + "begins again at its committed offsets", id);
                    throw new ProducerFencedException(id + " has aborted a transaction that its tasks share");
                }
                if (method.getName().equals("abortTransaction")) {
                    // Also if this call fails: then it is not known what has become of the transaction.
                    aborted.set(true);
                }
                try {
                    return method.invoke(producer, arguments);
                } catch (final InvocationTargetException error) {
                    throw error.getCause();
                }
            });
    }
}
