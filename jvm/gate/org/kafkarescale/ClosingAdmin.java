package org.kafkarescale;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.ForwardingAdmin;
import org.apache.kafka.common.metrics.KafkaMetric;

/**
 * An admin client that tells the gate when Kafka Streams has closed.
 *
 * <p>Kafka Streams closes its admin client last, after its threads have ended and the state directory is free.
 */
final class ClosingAdmin extends ForwardingAdmin {
    private final AtomicReference<Runnable> closing;

    /**
     * Makes an admin client.
     *
     * @param config that of the client
     * @param closing what to do when Kafka Streams closes the client for the first time
     */
    ClosingAdmin(final Map<String, Object> config, final Runnable closing) {
        super(config);
        this.closing = new AtomicReference<>(closing);
    }

    @Override
    public void close(final Duration timeout) {
        try {
            closing.getAndSet(() -> {}).run();
        } finally {
            super.close(timeout);
        }
    }

    /** Without this method, Kafka Streams 4.0 and newer logs an error for each metric that it registers. */
    public void registerMetricForSubscription(final KafkaMetric metric) {}

    /** Without this method, Kafka Streams 4.0 and newer logs an error for each metric that it removes. */
    public void unregisterMetricFromSubscription(final KafkaMetric metric) {}
}
