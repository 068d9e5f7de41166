package org.kafkarescale;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.AlterConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds a Kafka Streams application at the door of its group, until the offsets that it has to start from are
 * there.
 *
 * <p>Set it by configuration alone: {@code default.client.supplier=org.kafkarescale.HoldGate} (KIP-884, Kafka
 * Streams 3.5), with this jar on the class path. {@code new KafkaStreams(...)} asks the gate for an admin client
 * first, and there the gate blocks. By then, the process has done everything that its start takes, and has joined
 * no group. When the door is open, the gate hands out the clients of the supplier that the application would have
 * without it. It guards the producers as {@link FencedAfterAbort} does.
 *
 * <p>Only the start offsets open the door, and only all of them. If some of them did, the application could join
 * before the rest is committed. The group {@code <application.id>-gate} says how many there are. It also has the
 * pass: a number that each cutover commits there anew before it starts the application, and that a rollback
 * deletes. A held process that does not find its pass any more ends, so that no later cutover lets it in. If a
 * process finds no pass at its start, the offsets decide. An application that has offsets was promoted before, and
 * this is an ordinary start of it.
 *
 * <p>Once a second, a held process tells in that group that it waits. {@code core/expansion/holding.py} is the
 * other side of this.
 */
public class HoldGate implements KafkaClientSupplier, Configurable {
    /** How long to wait before the process ends with an error: whole seconds, 1800 by default. */
    public static final String SECONDS = "kafka.rescale.hold.seconds";
    /** Class of the supplier whose clients are handed out; by default that of Kafka Streams. */
    public static final String SUPPLIER = "kafka.rescale.hold.supplier";
    /** What the metadata of a pass begins with; the number of start offsets follows. */
    static final String HOLD = "hold ";

    private static final Logger LOG = LoggerFactory.getLogger(HoldGate.class);
    private static final int DEFAULT_SECONDS = 1800;
    private static final long POLL_MS = 150;
    private static final long UNANSWERED_POLL_MS = 1000;
    private static final long BEAT_MS = 1000;
    private static final long TELL_MS = 30_000;
    private static final int REQUEST_MS = 10_000;

    private final String instance = UUID.randomUUID().toString().substring(0, 8);
    private KafkaClientSupplier wrapped;
    private String group;
    private long limitMs;
    private boolean open;

    /** For the configuration, which names the class. */
    public HoldGate() {}

    /**
     * For a program that hands a supplier of its own to {@code KafkaStreams}: it calls {@link #configure} itself.
     *
     * @param wrapped supplier whose clients are handed out
     */
    public HoldGate(final KafkaClientSupplier wrapped) {
        this.wrapped = wrapped;
    }

    /**
     * Takes over the application's settings.
     *
     * @param config that of the application
     * @throws IllegalStateException a setting can't be used, or the gate holds another application already
     */
    @Override
    public void configure(final Map<String, ?> config) {
        final String named = Settings.applicationId(config);
        assertSame(named);
        group = named;
        limitMs = TimeUnit.SECONDS.toMillis(limitSeconds(Settings.text(config, SECONDS)));
        if (wrapped == null) {
            wrapped = Settings.supplier(config, SUPPLIER, HoldGate.class);
        }
    }

    /** The door is opened once. A second application would walk through the door of the first. */
    private void assertSame(final String other) {
        if (group != null && !group.equals(other)) {
            throw new IllegalStateException("found one hold gate for the applications " + group + " and " + other
                + "; expected one for each. Make a gate for each KafkaStreams");
        }
    }

    private static long limitSeconds(final String given) {
        if (given == null) {
            return DEFAULT_SECONDS;
        }
        if (!given.matches("0*[1-9]\\d{0,9}")) {
            throw new IllegalStateException(SECONDS + ": found " + given + "; expected a whole number of seconds, "
                + "at least 1. Set it to " + DEFAULT_SECONDS + ", for example, or remove it");
        }
        return Long.parseLong(given);
    }

    @Override
    public Admin getAdmin(final Map<String, Object> config) {
        hold(config);
        return wrapped.getAdmin(config);
    }

    @Override
    public Producer<byte[], byte[]> getProducer(final Map<String, Object> config) {
        return FencedAfterAbort.guarded(opened().getProducer(config), config);
    }

    /** Called for the main consumer, before anything is joined: only its configuration names the application. */
    @Override
    public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> config) {
        assertSame(String.valueOf(config.get(ConsumerConfig.GROUP_ID_CONFIG)));
        return opened().getConsumer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getRestoreConsumer(final Map<String, Object> config) {
        return opened().getRestoreConsumer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getGlobalConsumer(final Map<String, Object> config) {
        return opened().getGlobalConsumer(config);
    }

    private synchronized KafkaClientSupplier opened() {
        if (!open) {
            throw new IllegalStateException("held at the door: expected to be asked for an admin client first, as "
                + "Kafka Streams does from 3.5 on. Use that, or start the application without this gate");
        }
        return wrapped;
    }

    private synchronized void hold(final Map<String, Object> config) {
        if (open) {
            return;
        }
        if (group == null) {
            throw new IllegalStateException("held at the door of no group: expected configure(...) to be called "
                + "before KafkaStreams is made, with the configuration that KafkaStreams gets");
        }
        final Map<String, Object> own = new HashMap<>(config);
        own.put(AdminClientConfig.CLIENT_ID_CONFIG, group + "-hold-" + instance);
        own.remove(AdminClientConfig.METRIC_REPORTER_CLASSES_CONFIG);
        final Admin admin = Admin.create(own);
        try {
            new Door(admin).await();
        } finally {
            // The last beat may be unanswered. Nobody needs the answer, and within the pause nobody may wait for it.
            admin.close(Duration.ZERO);
        }
        open = true;
    }

    /**
     * Returns the pass of a cutover.
     *
     * @param committed what has been committed to the group of the gate
     * @return null if there is no pass
     */
    static Pass passOf(final Map<TopicPartition, OffsetAndMetadata> committed) {
        for (final OffsetAndMetadata each : committed.values()) {
            if (each != null && each.metadata().startsWith(HOLD)) {
                final int offsets = Integer.parseInt(each.metadata().substring(HOLD.length()).trim());
                return new Pass(each.offset(), offsets, seats(committed));
            }
        }
        return null;
    }

    private static List<TopicPartition> seats(final Map<TopicPartition, OffsetAndMetadata> committed) {
        final List<TopicPartition> seats = new ArrayList<>();
        committed.forEach((partition, each) -> {
            if (each != null && !each.metadata().startsWith(HOLD)) {
                seats.add(partition);
            }
        });
        Collections.shuffle(seats);
        return seats;
    }

    /** What a cutover has committed for the processes that it holds. */
    static final class Pass {
        /** The number of this attempt, and of no other. */
        final long number;
        /** How many offsets the promotion commits. */
        final int offsets;
        /** Where a held process may tell that it waits. */
        final List<TopicPartition> seats;

        Pass(final long number, final int offsets, final List<TopicPartition> seats) {
            this.number = number;
            this.offsets = offsets;
            this.seats = seats;
        }
    }

    /** The wait of one process. */
    private final class Door {
        private final Admin admin;
        private final String gate = group + WarmUpGate.GROUP_SUFFIX;
        private final long beganMs = nowMs();
        private Pass pass;
        private String found = "no answer of the brokers";
        private long pauseMs = POLL_MS;
        private long beats;
        private long beatAtMs;
        private long toldAtMs = beganMs;

        Door(final Admin admin) {
            this.admin = admin;
        }

        void await() {
            while (true) {
                // After the limit it looks once more: the offsets may have come since the last look.
                final boolean isLast = nowMs() - beganMs >= limitMs;
                if (isOpen()) {
                    return;
                }
                if (isLast) {
                    throw refused(found + " after " + TimeUnit.MILLISECONDS.toSeconds(limitMs) + " s",
                        "the start offsets, which a cutover commits when it promotes " + group,
                        "Nothing was joined or changed. The cutover has been rolled back, or nothing carries it "
                            + "on: trigger the expansion again. If it takes longer, raise " + SECONDS);
                }
                tell();
                sleep();
            }
        }

        private boolean isOpen() {
            final Map<TopicPartition, OffsetAndMetadata> offsets;
            final Pass seen;
            try {
                // The pass is read last: if it is still there, it had not been taken back when the offsets came.
                offsets = committed(group);
                seen = passOf(committed(gate));
            } catch (final NoAnswer error) {
                if (!error.getMessage().equals(found)) {
                    LOG.warn("Held at the door of group {}: {}; asking on", group, error.getMessage());
                }
                found = error.getMessage();
                pauseMs = UNANSWERED_POLL_MS;
                return false;
            }
            pauseMs = POLL_MS;
            offsets.values().removeIf(each -> each == null);
            if (pass == null) {
                if (seen == null) {
                    return wasPromoted(offsets.size());
                }
                pass = seen;
                LOG.warn("Held at the door of group {}: nothing is joined until its {} start offsets are "
                    + "committed, for {} s at most", group, pass.offsets, TimeUnit.MILLISECONDS.toSeconds(limitMs));
            }
            if (seen == null || seen.number != pass.number) {
                throw refused(seen == null ? "that the cutover has been called off" : "the pass of another cutover",
                    "the pass that it has begun to wait with",
                    "Nothing was joined or changed. The next cutover starts the application again");
            }
            found = offsets.size() + " of " + pass.offsets + " start offsets";
            if (offsets.size() >= pass.offsets) {
                LOG.warn("Let in: the {} start offsets of group {} are there, after {} ms", offsets.size(), group,
                    nowMs() - beganMs);
                return true;
            }
            beat();
            return false;
        }

        private boolean wasPromoted(final int offsets) {
            if (offsets == 0) {
                throw refused("neither offsets nor a pass in group " + gate,
                    "a cutover that starts it, or offsets of an earlier one",
                    "Only a cutover starts it with this gate, by `start_held` of the application file. Start it "
                        + "without this gate");
            }
            LOG.warn("Not held: group {} has {} offsets, and no cutover waits for it", group, offsets);
            return true;
        }

        private Map<TopicPartition, OffsetAndMetadata> committed(final String of) {
            final ListConsumerGroupOffsetsOptions options =
                new ListConsumerGroupOffsetsOptions().timeoutMs(REQUEST_MS);
            return new HashMap<>(
                answer(admin.listConsumerGroupOffsets(of, options).partitionsToOffsetAndMetadata(), of));
        }

        /**
         * Tells that this process waits. The first time, it waits for the answer, which may be a lack of rights.
         */
        private void beat() {
            if (pass.seats.isEmpty() || beats > 0 && nowMs() - beatAtMs < BEAT_MS) {
                return;
            }
            final TopicPartition seat = pass.seats.get((int) (beats % pass.seats.size()));
            beats++;
            beatAtMs = nowMs();
            final OffsetAndMetadata told = new OffsetAndMetadata(pass.number,
                "by " + instance + " " + beats + " for " + pass.number);
            final KafkaFuture<Void> done = admin.alterConsumerGroupOffsets(gate, Map.of(seat, told),
                new AlterConsumerGroupOffsetsOptions().timeoutMs(REQUEST_MS)).all();
            if (beats > 1) {
                return;
            }
            try {
                answer(done, gate);
            } catch (final NoAnswer error) {
                LOG.warn("Held at the door of group {}: it could not be told in group {} ({})", group, gate,
                    error.getMessage());
            }
        }

        private void tell() {
            if (nowMs() - toldAtMs >= TELL_MS) {
                toldAtMs = nowMs();
                LOG.warn("Held at the door of group {} for {} s: {}", group,
                    TimeUnit.MILLISECONDS.toSeconds(toldAtMs - beganMs), found);
            }
        }

        private <T> T answer(final KafkaFuture<T> future, final String of) {
            try {
                return future.get(2L * REQUEST_MS, TimeUnit.MILLISECONDS);
            } catch (final InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while held at the door of group " + group, error);
            } catch (final TimeoutException error) {
                throw new NoAnswer("no answer about group " + of);
            } catch (final ExecutionException error) {
                final Throwable cause = error.getCause();
                final boolean isDenied = cause instanceof AuthorizationException
                    || cause instanceof AuthenticationException;
                // Rights that were there and are gone may come back; what was never allowed is a mistake.
                if (isDenied && beats < 2) {
                    throw new IllegalStateException("held at the door: found " + cause + "; expected rights to "
                        + "READ the groups " + group + " and " + gate + ", and the application's internal topics. "
                        + "Grant them, as a prefixed ACL on " + group + " does", cause);
                }
                throw new NoAnswer("no answer about group " + of + " (" + cause + ")");
            }
        }

        private void sleep() {
            try {
                Thread.sleep(pauseMs);
            } catch (final InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while held at the door of group " + group, error);
            }
        }

        private IllegalStateException refused(final String what, final String expected, final String remedy) {
            return new IllegalStateException("held at the door of group " + group + ": found " + what
                + "; expected " + expected + ". " + remedy);
        }
    }

    private static long nowMs() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    /** The brokers can't be reached for a while, or a coordinator moves. */
    private static final class NoAnswer extends KafkaException {
        private static final long serialVersionUID = 1L;

        NoAnswer(final String message) {
            super(message);
        }
    }
}
