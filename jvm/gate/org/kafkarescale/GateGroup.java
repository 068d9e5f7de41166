package org.kafkarescale;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The group of a warm-up gate, as one instance of the application uses it.
 *
 * <p>The instance reads there what the pre-warming has committed. It tells there how far it has restored, that it
 * lives, and what the gate has refused. {@code core/expansion/prewarming.py} is the other side of this.
 */
final class GateGroup {
    /** Each instance restores all tasks: with the streams protocol, nobody knows which tasks it will get. */
    private static final String EVERYTHING = "everything";
    /** Local state stays: it was restored from the same topics. */
    private static final String KEEP = "keep";
    /** Ends the notes: this instance can keep its local state the next time. Gates of earlier versions could not. */
    private static final String KEEPS = " keeps";
    /** What the gate's notes begin with; what it has refused follows. */
    private static final String REFUSED = "refused: ";

    private static final Logger LOG = LoggerFactory.getLogger(GateGroup.class);
    private static final long REPORT_MS = 300;
    private static final long BEAT_MS = 1000;
    private static final long ADMIN_SECONDS = 30;
    /** Brokers take 4096 bytes of metadata, and offsets of many partitions are long. */
    private static final int LONGEST_MARK = 1000;

    private final String instance = UUID.randomUUID().toString().substring(0, 8);
    private final Admin admin;
    private final String name;
    private final Map<TopicPartition, Long> positions;
    private final Map<String, Integer> partitions = new HashMap<>();
    private final boolean everything;
    private final ScheduledExecutorService reporter;

    // Only the reporter's thread uses these four.
    private final Map<TopicPartition, Long> told = new HashMap<>();
    private long beats;
    private long beatAtMs;
    private boolean fails;

    private boolean marked;

    private GateGroup(final Admin admin, final String name, final Map<TopicPartition, Long> positions) {
        final Map<String, OffsetAndMetadata> counts = counts(admin, name);
        this.admin = admin;
        this.name = name;
        this.positions = positions;
        counts.forEach((input, count) -> partitions.put(input, Math.toIntExact(count.offset())));
        everything = says(counts, EVERYTHING);
        reporter = Executors.newSingleThreadScheduledExecutor(task -> {
            final Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        });
    }

    /**
     * Reads the inputs' counts, and begins to tell how far this instance has restored.
     *
     * @param config that of an admin client
     * @param name of the group
     * @param positions where the restore consumers are; the callers go on changing them
     * @return the group, which the caller has to close
     * @throws IllegalStateException the group has no counts, or can't be read
     */
    static GateGroup open(
            final Map<String, Object> config, final String name, final Map<TopicPartition, Long> positions) {
        final Map<String, Object> own = new HashMap<>(config);
        own.put(AdminClientConfig.CLIENT_ID_CONFIG, name);
        final Admin admin = Admin.create(own);
        try {
            final GateGroup group = new GateGroup(admin, name, positions);
            group.reporter.scheduleWithFixedDelay(group::report, REPORT_MS, REPORT_MS, TimeUnit.MILLISECONDS);
            return group;
        } catch (final RuntimeException error) {
            admin.close(Duration.ZERO);
            throw error;
        }
    }

    /**
     * Returns whether the application goes on with its local state.
     *
     * @param config that of an admin client
     * @param name of the group
     * @throws IllegalStateException the group has no counts, or can't be read
     */
    static boolean keepsState(final Map<String, Object> config, final String name) {
        try (Admin admin = Admin.create(config)) {
            return says(counts(admin, name), KEEP);
        }
    }

    /** Returns how many partitions each input is going to have. */
    Map<String, Integer> partitions() {
        return partitions;
    }

    /**
     * Returns the group that the main consumers have to join.
     *
     * @param application the group that they would join without the gate
     */
    String membersGroup(final String application) {
        return everything ? tellingGroup() + "-members" : application;
    }

    /** Ends the reports. What was told stays. */
    void close() {
        reporter.shutdownNow();
        admin.close(Duration.ZERO);
    }

    /**
     * Tells what the gate has refused: a local store may hold it, since a store is written before its changelog.
     *
     * <p>It stands beside the counts of the inputs, which stay. Where positions are, other instances write.
     */
    synchronized void mark(final String what) {
        if (marked) {
            return;
        }
        final String text = REFUSED + what;
        final String kept = text.substring(0, Math.min(text.length(), LONGEST_MARK));
        final Map<TopicPartition, OffsetAndMetadata> counts = new HashMap<>();
        partitions.forEach((input, count) ->
            counts.put(new TopicPartition(input, 0), new OffsetAndMetadata(count, kept)));
        try {
            answer(admin.alterConsumerGroupOffsets(name, counts).all(), name);
            marked = true;
        } catch (final RuntimeException error) {
            LOG.error("Delete the local state: it may hold what was {}, and group {} could not be told", text, name,
                error);
        }
    }

    /** Returns what the pre-warming has committed for each input. */
    private static Map<String, OffsetAndMetadata> counts(final Admin admin, final String name) {
        final String own = name.substring(0, name.length() - WarmUpGate.GROUP_SUFFIX.length()) + "-";
        final Map<TopicPartition, OffsetAndMetadata> committed =
            answer(admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata(), name);
        final Map<String, OffsetAndMetadata> found = new HashMap<>();
        committed.forEach((partition, count) -> {
            final String topic = partition.topic();
            // Positions that a faster instance has committed are no counts.
            final boolean isChangelog = topic.startsWith(own) && topic.endsWith("-changelog");
            if (count != null && partition.partition() == 0 && !isChangelog) {
                found.put(topic, count);
            }
        });
        // If the pre-warming has ended, the local state may be what it has restored. And the application would wait
        // for ever. A cutover commits a pass to the same group: what stands beside that are no counts.
        if (found.isEmpty() || HoldGate.passOf(committed) != null) {
            throw new IllegalStateException("found no counts of inputs in group " + name + "; expected those that a "
                + "pre-warming commits before it starts the application. Nothing was joined or restored. Only "
                + "`start_gated` of the application file sets the warm-up gate: start the application without it");
        }
        return found;
    }

    private static boolean says(final Map<String, OffsetAndMetadata> counts, final String word) {
        return counts.values().stream().map(OffsetAndMetadata::metadata)
            .anyMatch(text -> !text.startsWith(REFUSED) && List.of(text.split(" ")).contains(word));
    }

    /** Returns the group to which this instance commits its positions. */
    private String tellingGroup() {
        return everything ? name + "-" + instance : name;
    }

    private void report() {
        try {
            final Map<TopicPartition, Long> own = new HashMap<>(positions);
            // An input that serves as the changelog of a table: nobody waits for it, and its count stands there.
            own.keySet().removeIf(each -> partitions.containsKey(each.topic()));
            final Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            own.forEach((partition, position) -> {
                if (!position.equals(told.get(partition))) {
                    offsets.put(partition, new OffsetAndMetadata(position, "by " + instance + KEEPS));
                }
            });
            beat(own, offsets);
            if (offsets.isEmpty()) {
                return;
            }
            answer(admin.alterConsumerGroupOffsets(tellingGroup(), offsets).all(), tellingGroup());
            told.putAll(own);
            fails = false;
        } catch (final RuntimeException error) {
            // The next try comes within a second. So the log gets this once, and not at all while the gate closes.
            if (!fails && !reporter.isShutdown()) {
                LOG.warn("Positions could not be committed to group {}; the gate tries again. The application needs "
                    + "READ on it and on the changelogs", tellingGroup(), error);
            }
            fails = true;
        }
    }

    /**
     * Tells that this instance lives.
     *
     * <p>It does so beside each of its positions in turn, because another instance may have a standby of one of
     * them, and write there as well.
     */
    private void beat(final Map<TopicPartition, Long> own, final Map<TopicPartition, OffsetAndMetadata> offsets) {
        final long nowMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
        if (own.isEmpty() || beats > 0 && nowMs - beatAtMs < BEAT_MS) {
            return;
        }
        beatAtMs = nowMs;
        beats++;
        final List<TopicPartition> all = new ArrayList<>(own.keySet());
        final TopicPartition next = all.get((int) (beats % all.size()));
        offsets.put(next, new OffsetAndMetadata(own.get(next), "by " + instance + " " + beats + KEEPS));
    }

    private static <T> T answer(final Future<T> future, final String group) {
        try {
            return future.get(ADMIN_SECONDS, TimeUnit.SECONDS);
        } catch (final InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while the warm-up gate used group " + group, error);
        } catch (final ExecutionException | TimeoutException error) {
            throw new IllegalStateException("the warm-up gate can't use group " + group + ": found "
                + (error.getCause() == null ? "no answer within " + ADMIN_SECONDS + " s" : error.getCause())
                + "; expected brokers that answer, and the right to READ it. Grant that, as a prefixed ACL on the "
                + "application.id does", error);
        }
    }
}
