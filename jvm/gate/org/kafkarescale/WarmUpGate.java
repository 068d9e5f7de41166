package org.kafkarescale;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.apache.kafka.streams.StreamsConfig;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets a Kafka Streams application restore its stores, and nothing else: it reads, writes and commits nothing.
 *
 * <p>Set it by configuration alone: {@code default.client.supplier=org.kafkarescale.WarmUpGate} (KIP-884, Kafka
 * Streams 3.5), with this jar on the class path. The application begins without local state, and restores all of
 * it. If a program hands a client supplier of its own to {@code KafkaStreams}, it makes a gate, calls
 * {@link #configure} of the gate, and hands over the gate in place of that supplier.
 *
 * <p>The gate uses the group {@code <application.id>-gate}. There it finds how many partitions each input is going
 * to have, as the "offset" of the input's partition 0. It shows these counts to the assignor, because the internal
 * topics have the counts that follow from them already. Without them no pre-warming is under way, and the gate
 * does not start the application. The gate commits the restore consumer's position in every changelog to this
 * group. Beside the inputs' counts it notes what it has refused: a local store may hold that, since it is written
 * before its changelog.
 *
 * <p>If "everything" stands beside the counts, each instance restores the stores of all tasks. It is alone in a
 * group {@code <application.id>-gate-<name>-members}, and commits its positions to
 * {@code <application.id>-gate-<name>}.
 *
 * <p>Beside a position stands which instance has told it. Once a second, an instance adds a number to one of these
 * notes, which rises until its {@code KafkaStreams} is closed. The members of the group don't tell that: if an
 * instance dies, it stays a member until its session times out.
 *
 * <p>If "keep" stands beside the counts, the application goes on with its local state: that is what it has
 * restored of the same topics before.
 */
public class WarmUpGate implements KafkaClientSupplier, Configurable {
    /** Appended to the {@code application.id}; a prefixed ACL on the application covers the group. */
    public static final String GROUP_SUFFIX = "-gate";

    private static final Logger LOG = LoggerFactory.getLogger(WarmUpGate.class);
    private static final Duration POSITION_WAIT = Duration.ofSeconds(1);

    private final Map<TopicPartition, Long> positions = new ConcurrentHashMap<>();
    private String application;
    private LocalState localState;
    private boolean exactlyOnce;
    private Map<String, Object> adminConfig = Map.of();
    /** How many admin clients are open. Each {@code KafkaStreams} has one until it ends. */
    private int admins;
    private volatile GateGroup group;

    /**
     * Deletes the application's local state, unless the gate's group says that it is to be kept.
     *
     * <p>What an earlier attempt has left may belong to topics that are gone.
     *
     * @param config that of the application
     * @throws IllegalStateException the application can't be pre-warmed with this configuration, no pre-warming is
     *     under way, or an instance uses the local state. Nothing was deleted then.
     */
    @Override
    public void configure(final Map<String, ?> config) {
        // With the streams protocol, the brokers decide how many tasks there are, by the inputs as they are now.
        if ("streams".equalsIgnoreCase(Settings.text(config, "group.protocol"))) {
            throw new IllegalStateException("behind the warm-up gate group.protocol has to be classic, but found "
                + "streams: let start_gated set it");
        }
        assertSame(Settings.applicationId(config));
        localState = new LocalState(config);
        exactlyOnce = String.valueOf(Settings.text(config, StreamsConfig.PROCESSING_GUARANTEE_CONFIG))
            .startsWith("exactly_once");
        if (!keepsState(config)) {
            localState.delete();
        }
    }

    /**
     * Asks the brokers whether the application goes on with its local state.
     *
     * @param config that of the application
     * @return whether it does
     * @throws IllegalStateException no pre-warming is under way, or the brokers don't answer
     */
    protected boolean keepsState(final Map<String, ?> config) {
        final String name = Settings.applicationId(config) + GROUP_SUFFIX;
        return GateGroup.keepsState(new QuietConfig(config).getAdminConfigs(name), name);
    }

    /**
     * Called first, by each {@code KafkaStreams}.
     *
     * @throws IllegalStateException the gate was not configured: it would let the application begin with local state
     *     of an earlier attempt, and under the streams protocol read its inputs
     */
    @Override
    public synchronized Admin getAdmin(final Map<String, Object> config) {
        if (localState == null) {
            throw new IllegalStateException("found a warm-up gate without a configuration; expected configure(...) to "
                + "be called before KafkaStreams is made, with the configuration that KafkaStreams gets");
        }
        adminConfig = config;
        final Admin admin = new ClosingAdmin(config, this::close);
        admins++;
        return admin;
    }

    @Override
    public Producer<byte[], byte[]> getProducer(final Map<String, Object> config) {
        return new SilentProducer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> config) {
        return new ClosedConsumer(gated(config));
    }

    @Override
    public Consumer<byte[], byte[]> getRestoreConsumer(final Map<String, Object> config) {
        return new RestoreConsumer(config, positions);
    }

    /** A global table has no offsets in the group, so it may be read. */
    @Override
    public Consumer<byte[], byte[]> getGlobalConsumer(final Map<String, Object> config) {
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /**
     * Returns the main consumer's configuration, with the assignor that sees the inputs as they are going to be.
     *
     * @param config that of the main consumer
     * @throws IllegalStateException no pre-warming of this application is under way, or the brokers don't answer
     */
    protected final Map<String, Object> gated(final Map<String, Object> config) {
        final String joined = String.valueOf(config.get(ConsumerConfig.GROUP_ID_CONFIG));
        final GateGroup opened = open(joined);
        final Map<String, Object> gated = new HashMap<>(config);
        // Without a reset policy, a position that is missing would end the application.
        gated.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "latest");
        gated.put(ConsumerConfig.GROUP_ID_CONFIG, opened.membersGroup(joined));
        gated.put(GrownAssignor.DELEGATE, config.get(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG));
        gated.put(GrownAssignor.PARTITIONS, opened.partitions());
        gated.put(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, GrownAssignor.class.getName());
        return gated;
    }

    private synchronized GateGroup open(final String joined) {
        assertSame(joined);
        if (group == null) {
            group = GateGroup.open(adminConfig, joined + GROUP_SUFFIX, positions);
            LOG.warn("The warm-up gate is shut: stores are restored, nothing is processed. Inputs seen as {}",
                group.partitions());
        }
        return group;
    }

    /** Refuses a second application: positions and local state are those of one. */
    private synchronized void assertSame(final String other) {
        if (application != null && !application.equals(other)) {
            throw new IllegalStateException("found one warm-up gate for the applications " + application + " and "
                + other + "; expected one for each. Make a gate for each KafkaStreams");
        }
        application = other;
    }

    /**
     * Called when a {@code KafkaStreams} has ended.
     *
     * <p>Its process may live on. If it went on telling, it would count as an instance that lives.
     */
    private synchronized void close() {
        admins--;
        if (admins == 0 && group != null) {
            group.close();
            group = null;
            positions.clear();
        }
        if (exactlyOnce) {
            localState.deleteDoomedTasks();
        }
    }

    /**
     * Returns what is to be thrown. The gate's group has been told by then.
     *
     * <p>Whoever started the application can't rely on its end to know: the application may go on.
     */
    private IllegalStateException refused(final String what) {
        final GateGroup opened = group;
        if (opened != null) {
            opened.mark(what);
        }
        return new IllegalStateException("behind the warm-up gate nothing may be written or committed, but found "
            + what + ". Does the application write by itself, as a wall-clock punctuator does?");
    }

    /** The application's configuration once more, which Kafka Streams has logged already. */
    private static final class QuietConfig extends StreamsConfig {
        QuietConfig(final Map<String, ?> config) {
            super(config, false);
        }
    }

    /** The main consumer, whose partitions stay paused: nothing is fetched, so no position moves. */
    private final class ClosedConsumer extends KafkaConsumer<byte[], byte[]> {
        ClosedConsumer(final Map<String, Object> config) {
            super(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        @Override
        public ConsumerRecords<byte[], byte[]> poll(final Duration timeout) {
            pause(assignment());
            // What was fetched of partitions that are assigned within this call is not handed over.
            super.poll(timeout);
            return ConsumerRecords.empty();
        }

        /** Called for the partitions of a task that has been restored. */
        @Override
        public void resume(final Collection<TopicPartition> restored) {}

        @Override
        public void commitSync(final Map<TopicPartition, OffsetAndMetadata> offsets) {
            throw refused("offsets " + offsets);
        }
    }

    /** Tells how far each changelog is applied: Kafka Streams asks for the position when nothing is buffered. */
    private static final class RestoreConsumer extends KafkaConsumer<byte[], byte[]> {
        private final Map<TopicPartition, Long> positions;

        RestoreConsumer(final Map<String, Object> config, final Map<TopicPartition, Long> positions) {
            super(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            this.positions = positions;
        }

        @Override
        public long position(final TopicPartition changelog) {
            final long position = super.position(changelog);
            positions.put(changelog, position);
            return position;
        }

        /**
         * Called for a changelog that has been restored.
         *
         * <p>If the copying goes on, records behind its end are buffered by then, and Kafka Streams does not ask
         * for the position any more.
         */
        @Override
        public void pause(final Collection<TopicPartition> restored) {
            for (final TopicPartition changelog : restored) {
                try {
                    positions.computeIfPresent(changelog, (same, known) -> super.position(changelog, POSITION_WAIT));
                } catch (final RuntimeException error) {
                    // Kafka Streams does not expect an error here, and does not need the position.
                    LOG.debug("The position of {} is not known", changelog, error);
                }
            }
            super.pause(restored);
        }
    }

    /** Writes nothing, neither state nor output. */
    private final class SilentProducer extends KafkaProducer<byte[], byte[]> {
        SilentProducer(final Map<String, Object> config) {
            super(config, new ByteArraySerializer(), new ByteArraySerializer());
        }

        @Override
        public Future<RecordMetadata> send(final ProducerRecord<byte[], byte[]> record, final Callback callback) {
            throw refused("a record for topic " + record.topic());
        }

        @Override
        public void sendOffsetsToTransaction(
                final Map<TopicPartition, OffsetAndMetadata> offsets, final ConsumerGroupMetadata groupMetadata) {
            throw refused("offsets " + offsets);
        }
    }
}
