package org.kafkarescale;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.ForwardingAdmin;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Deletes, when the application closes, the directories of tasks that the next start would declare corrupted.
 *
 * <p>Since 4.3, Kafka Streams keeps the offset of a store in the store (KIP-1035). A store of windows or sessions
 * consists of segments, and one without a record has none, so that it has no place for its offset. With exactly-once,
 * the next start finds the task's directory without that offset, deletes the state of the whole task, and sets it up a
 * second time. A task without a directory is set up once.
 *
 * <p>Kafka Streams closes its admin client last, when its threads have ended and the state directory is free.
 */
final class ClosingAdmin extends ForwardingAdmin {
    /** Kafka Streams locks this file as long as an instance uses the directory. */
    static final String PROCESS_FILE = "kafka-streams-process-metadata";

    private static final Logger LOG = LoggerFactory.getLogger(ClosingAdmin.class);
    /** Before 4.3, this file of a task has the offsets of all its stores, of empty ones as well. */
    private static final String OFFSETS_FILE = ".checkpoint";
    private static final String TASK = "\\d+_\\d+";

    private final Path directory;

    /**
     * Wraps an admin client.
     *
     * @param config that of the client
     * @param directory the application's local state
     */
    ClosingAdmin(final Map<String, Object> config, final Path directory) {
        super(config);
        this.directory = directory;
    }

    @Override
    public void close(final Duration timeout) {
        deleteDoomed(directory);
        super.close(timeout);
    }

    /** Without this, Kafka Streams 4.0 and newer logs an error for each metric of a client that it removes. */
    public void registerMetricForSubscription(final KafkaMetric metric) {}

    public void unregisterMetricFromSubscription(final KafkaMetric metric) {}

    /** Local state is only a copy, and Kafka Streams itself would delete it: to delete it is always safe. */
    private static void deleteDoomed(final Path directory) {
        if (!Files.isDirectory(directory)) {
            return;
        }
        try (FileChannel channel = FileChannel.open(
                    directory.resolve(PROCESS_FILE), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = channel.tryLock()) {
            if (lock == null) {
                return;
            }
            for (final Path task : directoriesIn(directory)) {
                if (task.getFileName().toString().matches(TASK) && lacksAnOffset(task)) {
                    delete(task);
                    LOG.info("Task {} has an empty store without an offset: its directory is deleted", task.getFileName());
                }
            }
        } catch (final IOException | UncheckedIOException | OverlappingFileLockException error) {
            LOG.warn("Tasks with empty stores could not be deleted; they may be set up twice at the next start", error);
        }
    }

    /** Returns whether a store of a task consists of segments, and has none. */
    private static boolean lacksAnOffset(final Path task) throws IOException {
        if (Files.exists(task.resolve(OFFSETS_FILE))) {
            return false;
        }
        for (final Path store : directoriesIn(task)) {
            try (Stream<Path> files = Files.list(store)) {
                if (files.findAny().isEmpty()) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Deletes a directory with everything in it. */
    static void delete(final Path directory) throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            for (final Path path : (Iterable<Path>) all.sorted(Comparator.reverseOrder())::iterator) {
                Files.delete(path);
            }
        }
    }

    private static List<Path> directoriesIn(final Path directory) throws IOException {
        try (Stream<Path> all = Files.list(directory)) {
            return all.filter(Files::isDirectory).collect(Collectors.toList());
        }
    }
}
