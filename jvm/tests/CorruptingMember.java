import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Passes each record of the input on to the output, as it is. Tasks of another sub-topology read
 * {@code <input>-spoiled}. In each of these, the first record corrupts its task, as a record does that can't be
 * sent in time.
 */
public final class CorruptingMember {
    private static final Set<TaskId> CORRUPTED = ConcurrentHashMap.newKeySet();

    private CorruptingMember() {
    }

    public static void main(final String[] arguments) throws InterruptedException {
        Member.run(arguments, CorruptingMember::topology);
    }

    private static Topology topology(final Member member, final Properties settings) {
        final var bytes = new ByteArrayDeserializer();
        return new Topology()
            .addSource("records", bytes, bytes, member.input())
            .addSink("results", member.output(), new ByteArraySerializer(), new ByteArraySerializer(), "records")
            .addSource("spoiled", bytes, bytes, member.input() + "-spoiled")
            .addProcessor("corrupter", Corrupter::new, "spoiled");
    }

    private static final class Corrupter implements Processor<byte[], byte[], Void, Void> {
        private TaskId task;

        @Override
        public void init(final ProcessorContext<Void, Void> context) {
            task = context.taskId();
        }

        @Override
        public void process(final Record<byte[], byte[]> record) {
            if (CORRUPTED.add(task)) {
                throw new TaskCorruptedException(Set.of(task));
            }
        }
    }
}
