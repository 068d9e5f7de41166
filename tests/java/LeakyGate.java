import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.kafkarescale.WarmUpGate;

/**
 * A warm-up gate that stands open: the application processes what it reads, and the gate refuses and notes
 * nothing.
 */
public final class LeakyGate extends WarmUpGate {
    @Override
    public Producer<byte[], byte[]> getProducer(final Map<String, Object> config) {
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    @Override
    public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> config) {
        final Map<String, Object> open = new HashMap<>(gated(config));
        open.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(open, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }
}
