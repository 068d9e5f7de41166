package org.kafkarescale;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
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
 * <p>Set it by configuration alone: {@code default.client.supplier=org.kafkarescale.WarmUpGate} (KIP-884, Kafka Streams
 * 3.5), with this jar on the class path. The application begins without local state, and restores all of it. A program
 * that hands a client supplier of its own to {@code KafkaStreams} calls {@link #configure} itself.
 *
 * <p>It keeps the group {@code <application.id>-gate}. There it finds, as the "offset" of partition 0 of an input, how
 * many partitions that input is going to have; the assignor is shown these, because the internal topics have the
 * counts that follow from them already. And there it commits the restore consumer's position in every changelog; and,
 * beside the inputs' counts, what it has refused: a local store may hold it, since it is written before its changelog.
 *
 * <p>If "{@value #EVERYTHING}" stands beside the counts, each instance restores the stores of all tasks: it is alone in
 * a group {@code <application.id>-gate-<name>-members}, and commits its positions to {@code <application.id>-gate-<name>}.
 * Beside a position stands which instance has told it, and every second one of them counts on: the group would
 * count an instance that has died among its members until its session times out.
 *
 * <p>If "{@value #KEEP}" stands beside the counts, the application goes on with its local state: that is what it has
 * restored of the same topics before.
 */
public class WarmUpGate implements KafkaClientSupplier, Configurable {
    /** Appended to the {@code application.id}; a prefixed ACL on the application covers the group. */
    public static final String GROUP_SUFFIX = "-gate";
    /** Under the streams protocol, no process knows beforehand which tasks the brokers will give to an instance. */
    static final String EVERYTHING = "everything";
    /** Local state stays: it was restored from the same topics. */
    static final String KEEP = "keep";

    private static final Logger LOG = LoggerFactory.getLogger(WarmUpGate.class);
    private static final String REFUSED = "refused: ";
    private static final Duration POSITION_WAIT = Duration.ofSeconds(1);
    private static final long REPORT_MS = 300;
    private static final long BEAT_MS = 1000;
    private static final long ADMIN_SECONDS = 30;
    /** Brokers take 4096 bytes of metadata, and offsets of many partitions are long. */
    private static final int LONGEST_MARK = 1000;

    private final Map<TopicPartition, Long> positions = new ConcurrentHashMap<>();
    private final String instance = UUID.randomUUID().toString().substring(0, 8);
    private long beats;
    private long beatAtMs;
    private Admin admin;
    private Map<String, Object> adminConfig = Map.of();
    private Path directory;
    private boolean exactlyOnce;
    private Map<String, Integer> partitions = Map.of();
    private String group;
    private boolean everything;
    private boolean marked;

    /**
     * Deletes the application's local state, unless the gate's group says that it is to be kept: what an earlier attempt
     * left may belong to topics that are gone.
     */
    @Override
    public void configure(final Map<String, ?> config) {
        // There the brokers decide how many tasks there are, by the inputs as they are now.
        if ("streams".equalsIgnoreCase(String.valueOf(config.get("group.protocol")))) {
            throw new IllegalStateException("behind the warm-up gate group.protocol has to be classic: let start_gated set it");
        }
        final Object parent = config.containsKey(StreamsConfig.STATE_DIR_CONFIG)
            ? config.get(StreamsConfig.STATE_DIR_CONFIG)
            : StreamsConfig.configDef().defaultValues().get(StreamsConfig.STATE_DIR_CONFIG);
        directory = Path.of(parent.toString(), config.get(StreamsConfig.APPLICATION_ID_CONFIG).toString());
        exactlyOnce = String.valueOf(config.get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG)).startsWith("exactly_once");
        try {
            if (!keepsState(config)) {
                deleteUnlessInUse(directory);
            }
        } catch (final IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /**
     * Asks the brokers whether the application goes on with its local state.
     *
     * @param config that of the application
     * @return whether it does
     */
    protected boolean keepsState(final Map<String, ?> config) {
        final String gateGroup = config.get(StreamsConfig.APPLICATION_ID_CONFIG) + GROUP_SUFFIX;
        try (Admin asking = Admin.create(new QuietConfig(config).getAdminConfigs(gateGroup))) {
            return counts(asking, gateGroup).values().stream().anyMatch(count -> says(count, KEEP));
        }
    }

    @Override
    public Admin getAdmin(final Map<String, Object> config) {
        adminConfig = config;
        return exactlyOnce ? new ClosingAdmin(config, directory) : Admin.create(config);
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

    /** Returns the main consumer's configuration, with the assignor that sees the inputs as they are going to be. */
    protected final Map<String, Object> gated(final Map<String, Object> config) {
        open(config.get(ConsumerConfig.GROUP_ID_CONFIG) + GROUP_SUFFIX);
        final Map<String, Object> gated = new HashMap<>(config);
        // Without a reset policy, a position that is missing would end the application.
        gated.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "latest");
        gated.computeIfPresent(ConsumerConfig.GROUP_ID_CONFIG, (key, id) -> everything ? ownGroup() + "-members" : id);
        gated.put(GrownAssignor.DELEGATE, config.get(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG));
        gated.put(GrownAssignor.PARTITIONS, partitions);
        gated.put(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, GrownAssignor.class.getName());
        return gated;
    }

    private synchronized void open(final String gateGroup) {
        if (admin != null) {
            return;
        }
        group = gateGroup;
        final Map<String, Object> config = new HashMap<>(adminConfig);
        config.put(AdminClientConfig.CLIENT_ID_CONFIG, group);
        admin = Admin.create(config);
        final Map<String, Integer> found = new HashMap<>();
        counts(admin, group).forEach((input, count) -> {
            found.put(input, Math.toIntExact(count.offset()));
            everything |= says(count, EVERYTHING);
        });
        partitions = found;
        LOG.warn("The warm-up gate is shut: stores are restored, nothing is processed. Inputs seen as {}", partitions);
        final ScheduledExecutorService reporter = Executors.newSingleThreadScheduledExecutor(task -> {
            final Thread thread = new Thread(task, gateGroup);
            thread.setDaemon(true);
            return thread;
        });
        final Map<TopicPartition, Long> told = new HashMap<>();
        final String telling = everything ? ownGroup() : group;
        reporter.scheduleWithFixedDelay(() -> report(telling, told), REPORT_MS, REPORT_MS, TimeUnit.MILLISECONDS);
    }

    /** Returns what the gate's group says about each input. */
    private static Map<String, OffsetAndMetadata> counts(final Admin admin, final String gateGroup) {
        final String own = gateGroup.substring(0, gateGroup.length() - GROUP_SUFFIX.length()) + "-";
        final Map<String, OffsetAndMetadata> found = new HashMap<>();
        answer(admin.listConsumerGroupOffsets(gateGroup).partitionsToOffsetAndMetadata()).forEach((partition, count) -> {
            // Positions that a faster instance has committed are no counts.
            final boolean changelog = partition.topic().startsWith(own) && partition.topic().endsWith("-changelog");
            if (count != null && partition.partition() == 0 && !changelog) {
                found.put(partition.topic(), count);
            }
        });
        return found;
    }

    private static boolean says(final OffsetAndMetadata count, final String word) {
        return !count.metadata().startsWith(REFUSED) && List.of(count.metadata().split(" ")).contains(word);
    }

    private String ownGroup() {
        return group + "-" + instance;
    }

    private void report(final String group, final Map<TopicPartition, Long> told) {
        final Map<TopicPartition, Long> own = new HashMap<>(positions);
        // An input that serves as the changelog of a table: nobody waits for it, and its count stands there.
        own.keySet().removeIf(each -> partitions.containsKey(each.topic()));
        final Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        own.forEach((partition, position) -> {
            if (!position.equals(told.get(partition))) {
                offsets.put(partition, new OffsetAndMetadata(position, "by " + instance + ability()));
            }
        });
        beat(own, offsets);
        try {
            if (!offsets.isEmpty()) {
                answer(admin.alterConsumerGroupOffsets(group, offsets).all());
                told.putAll(own);
            }
        } catch (final RuntimeException error) {
            LOG.warn("Positions could not be committed to group {} (it needs READ on it and on the changelogs)", group,
                error);
        }
    }

    /** Tells that this instance lives, beside each of its positions in turn: one of them may be a standby's as well. */
    private void beat(final Map<TopicPartition, Long> own, final Map<TopicPartition, OffsetAndMetadata> offsets) {
        final long nowMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
        if (own.isEmpty() || beats > 0 && nowMs - beatAtMs < BEAT_MS) {
            return;
        }
        beatAtMs = nowMs;
        beats++;
        final List<TopicPartition> all = new ArrayList<>(own.keySet());
        final TopicPartition next = all.get((int) (beats % all.size()));
        offsets.put(next, new OffsetAndMetadata(own.get(next), "by " + instance + " " + beats + ability()));
    }

    /** Whether local state can be kept the next time: a program that has not called {@link #configure} may delete it. */
    private String ability() {
        return directory == null ? "" : " keeps";
    }

    private static <T> T answer(final Future<T> future) {
        try {
            return future.get(ADMIN_SECONDS, TimeUnit.SECONDS);
        } catch (final InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(error);
        } catch (final ExecutionException | TimeoutException error) {
            throw new IllegalStateException("the group of the warm-up gate can't be used", error);
        }
    }

    private static void deleteUnlessInUse(final Path directory) throws IOException {
        if (!Files.isDirectory(directory)) {
            return;
        }
        final Path file = directory.resolve(ClosingAdmin.PROCESS_FILE);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = channel.tryLock()) {
            if (lock == null) {
                throw new IllegalStateException("another instance uses " + directory + ": stop it first");
            }
        }
        ClosingAdmin.delete(directory);
    }

    /** Returns what is to be thrown, once it is known to whoever started the application: it may live on, or be gone. */
    private IllegalStateException refused(final String what) {
        mark(REFUSED + what);
        return new IllegalStateException("behind the warm-up gate nothing may be written or committed, but found "
            + what + ". Does the application write by itself, as a wall-clock punctuator does?");
    }

    /** Beside the counts of the inputs, which stay: where positions are, other instances write. */
    private synchronized void mark(final String text) {
        if (marked || partitions.isEmpty()) {
            return;
        }
        final String kept = text.substring(0, Math.min(text.length(), LONGEST_MARK));
        final Map<TopicPartition, OffsetAndMetadata> counts = new HashMap<>();
        partitions.forEach((input, count) ->
            counts.put(new TopicPartition(input, 0), new OffsetAndMetadata(count, kept)));
        try {
            answer(admin.alterConsumerGroupOffsets(group, counts).all());
            marked = true;
        } catch (final RuntimeException error) {
            LOG.error("Delete the local state: it may hold what was {}, and group {} could not be told", text, group,
                error);
        }
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
            // Partitions that are assigned within this call may have been fetched already; they are not handed over.
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

    /** Tells how far each changelog has been applied: Kafka Streams asks for the position when nothing is buffered. */
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
         * Called for a changelog that has been restored. If the copying goes on, records behind its end are buffered by
         * then, and Kafka Streams does not ask for the position any more.
         */
        @Override
        public void pause(final Collection<TopicPartition> restored) {
            for (final TopicPartition changelog : restored) {
                try {
                    positions.computeIfPresent(changelog, (same, known) -> super.position(changelog, POSITION_WAIT));
                } catch (final RuntimeException error) {
                    // Kafka Streams does not expect an error here, and what is told is only that it has restored.
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
        public Future<RecordMetadata> send(
                final ProducerRecord<byte[], byte[]> record,
                final org.apache.kafka.clients.producer.Callback callback) {
            throw refused("a record for topic " + record.topic());
        }

        @Override
        public void sendOffsetsToTransaction(
                final Map<TopicPartition, OffsetAndMetadata> offsets, final ConsumerGroupMetadata group) {
            throw refused("offsets " + offsets);
        }
    }
}
