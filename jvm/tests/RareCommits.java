import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.internals.StreamTask;

/**
 * Lets a {@link TopologyTestDriver} commit only when it is told to. By itself, the driver commits after each
 * record, so that a record cache never holds anything back.
 */
final class RareCommits {
    private final TopologyTestDriver driver;
    private final StreamTask task;

    RareCommits(final TopologyTestDriver driver) {
        this.driver = driver;
        try {
            final Field field = TopologyTestDriver.class.getDeclaredField("task");
            field.setAccessible(true);
            task = (StreamTask) field.get(driver);
        } catch (final ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Processes a record, and the records that follow from it in repartition topics. */
    void pipe(final String topic, final long timestamp, final byte[] key, final byte[] value, final Headers headers) {
        final Object partition = call("getInputTopicOrPatternPartition", topic);
        call("enqueueTaskRecord", topic, partition, timestamp, key, value, headers);
        process();
    }

    /** Writes what the caches hold, commits, and processes the records that follow from that. */
    void commit() {
        call("commit", task.prepareCommit(true));
        task.postCommit(true);
        process();
    }

    private void process() {
        call("captureOutputsAndReEnqueueInternalResults");
        task.resumePollingForPartitionsWithAvailableSpace();
        task.updateLags();
        while (task.hasRecordsQueued() && task.isProcessable(0L)) {
            task.process(0L);
            task.maybePunctuateStreamTime();
            call("captureOutputsAndReEnqueueInternalResults");
        }
    }

    private Object call(final String name, final Object... arguments) {
        for (final Method method : TopologyTestDriver.class.getDeclaredMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                method.setAccessible(true);
                try {
                    return method.invoke(driver, arguments);
                } catch (final InvocationTargetException error) {
                    throw new IllegalStateException(error.getCause());
                } catch (final IllegalAccessException error) {
                    throw new IllegalStateException(error);
                }
            }
        }
        throw new IllegalStateException("no method " + name);
    }
}
