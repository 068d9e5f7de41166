package org.kafkarescale;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.streams.StreamsConfig;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The directory in which Kafka Streams keeps the local state of an application.
 *
 * <p>Local state is only a copy of what the changelogs have. So it may be deleted whenever no instance uses it.
 */
final class LocalState {
    private static final Logger LOG = LoggerFactory.getLogger(LocalState.class);
    /** While an instance uses the directory, Kafka Streams has a lock on this file ({@code StateDirectory}). */
    private static final String LOCK_FILE = ".lock";
    /** Before 4.3, this file of a task has the offsets of all its stores, of empty ones as well. */
    private static final String OFFSETS_FILE = ".checkpoint";
    private static final String TASK = "\\d+_\\d+";

    private final Path directory;

    /**
     * The local state of an application.
     *
     * @param config that of the application
     * @throws IllegalStateException it has no {@code application.id}
     */
    LocalState(final Map<String, ?> config) {
        final String given = Settings.text(config, StreamsConfig.STATE_DIR_CONFIG);
        final Object parent = given != null
            ? given
            : StreamsConfig.configDef().defaultValues().get(StreamsConfig.STATE_DIR_CONFIG);
        directory = Path.of(parent.toString(), Settings.applicationId(config));
    }

    /**
     * Deletes everything but the file with the lock.
     *
     * @throws IllegalStateException an instance uses the directory, so nothing was deleted
     * @throws UncheckedIOException a file could not be deleted
     */
    void delete() {
        final boolean isDone;
        try {
            isDone = doUnlessUsed(() -> {
                try (Stream<Path> all = Files.list(directory)) {
                    for (final Path each : all.collect(Collectors.toList())) {
                        if (!each.getFileName().toString().equals(LOCK_FILE)) {
                            delete(each);
                        }
                    }
                }
            });
        } catch (final IOException error) {
            throw new UncheckedIOException("the local state in " + directory + " could not be deleted", error);
        }
        if (!isDone) {
            throw new IllegalStateException("found another instance that uses " + directory + "; expected local state "
                + "that no instance uses. Nothing was deleted: stop that instance first, or give this one a state.dir "
                + "of its own");
        }
    }

    /**
     * Deletes the directories of tasks that the next start with exactly-once would declare corrupted.
     *
     * <p>Since 4.3, Kafka Streams keeps the offset of a store in the store (KIP-1035). A store of windows or
     * sessions consists of segments. If it has no record, it has no segment, and so no place for its offset. With
     * exactly-once, the next start finds the task's directory without that offset, deletes the state of the whole
     * task, and sets the task up a second time. A task without a directory is set up once.
     */
    void deleteDoomedTasks() {
        try {
            doUnlessUsed(() -> {
                for (final Path task : directoriesIn(directory)) {
                    if (task.getFileName().toString().matches(TASK) && lacksAnOffset(task)) {
                        delete(task);
                        LOG.info("Task {} has an empty store without an offset: its directory is deleted",
                            task.getFileName());
                    }
                }
            });
        } catch (final IOException | UncheckedIOException error) {
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

    /**
     * Does something in the directory, if there is one. No instance can start in it meanwhile.
     *
     * @return false if an instance uses the directory, so that nothing was done
     */
    private boolean doUnlessUsed(final Deed deed) throws IOException {
        if (!Files.isDirectory(directory)) {
            return true;
        }
        final Path file = directory.resolve(LOCK_FILE);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = channel.tryLock()) {
            if (lock == null) {
                return false;
            }
            deed.run();
            return true;
        } catch (final OverlappingFileLockException error) {
            // Another KafkaStreams of this very process has the lock.
            return false;
        }
    }

    private static void delete(final Path entry) throws IOException {
        try (Stream<Path> all = Files.walk(entry)) {
            for (final Path path : (Iterable<Path>) all.sorted(Comparator.reverseOrder())::iterator) {
                Files.delete(path);
            }
        }
    }

    private static List<Path> directoriesIn(final Path parent) throws IOException {
        try (Stream<Path> all = Files.list(parent)) {
            return all.filter(Files::isDirectory).collect(Collectors.toList());
        }
    }

    /** Something that is done to files. */
    private interface Deed {
        void run() throws IOException;
    }
}
