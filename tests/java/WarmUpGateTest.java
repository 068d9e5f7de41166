import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.kafkarescale.GrownAssignor;
import org.kafkarescale.WarmUpGate;

/** What of the gate needs no broker; prints the name of each test that has passed. */
public final class WarmUpGateTest {
    private static final Node BROKER = new Node(1, "localhost", 9092);

    private WarmUpGateTest() {}

    public static void main(final String[] arguments) throws Exception {
        // The launcher of single source files leaves it to the class path, where Kafka wouldn't find the spy.
        Thread.currentThread().setContextClassLoader(WarmUpGateTest.class.getClassLoader());
        final Path directory = Path.of(arguments[0]);
        inputsAreSeenWithThePartitionsThatTheyWillHave();
        theAssignorOfKafkaStreamsDecides();
        aRecordIsRefused();
        theStreamsProtocolIsRefused();
        localStateIsDeleted(directory.resolve("first"));
        localStateInUseIsLeftAlone(directory.resolve("second"));
        localStateIsKept(directory.resolve("third"));
    }

    static void inputsAreSeenWithThePartitionsThatTheyWillHave() {
        final Cluster seen = assigned(Map.of("grows", 4, "shrinks", 1), Map.of("grows", 2, "shrinks", 3, "stays", 2));
        check(seen.partitionCountForTopic("grows") == 4, "a topic that grows: " + seen);
        check(seen.partitionCountForTopic("shrinks") == 3, "partitions that exist are never hidden: " + seen);
        check(seen.partitionCountForTopic("stays") == 2, "a topic that nothing is said about: " + seen);
        check(seen.nodes().equals(List.of(BROKER)), "the brokers: " + seen);
        passed("inputs are seen with the partitions that they will have");
    }

    static void theAssignorOfKafkaStreamsDecides() {
        final ConsumerPartitionAssignor gated = assignor(Map.of());
        check(gated.name().equals("spy") && gated.version() == 7, "name and version");
        check(gated.supportedProtocols().equals(List.of(ConsumerPartitionAssignor.RebalanceProtocol.COOPERATIVE)),
            "protocols");
        check(Spy.configured.containsKey("some.setting"), "its configuration");
        passed("the assignor of Kafka Streams decides");
    }

    static void aRecordIsRefused() {
        final Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", "localhost:1"));
        try (Producer<byte[], byte[]> producer = new WarmUpGate().getProducer(config)) {
            final String message = thrown(() -> producer.send(new ProducerRecord<>("totals", new byte[1]), null));
            check(message.contains("totals"), message);
        }
        passed("a record is refused");
    }

    static void theStreamsProtocolIsRefused() {
        final String message = thrown(() -> {
            new WarmUpGate().configure(Map.of("group.protocol", "streams", "application.id", "shop-g2"));
            return null;
        });
        check(message.contains("classic"), message);
        passed("the streams protocol is refused");
    }

    static void localStateIsDeleted(final Path state) throws IOException {
        final Path store = Files.createDirectories(state.resolve("shop-g2/0_0/rocksdb/totals"));
        Files.writeString(store.resolve("CURRENT"), "state of an earlier attempt");
        final Path other = Files.createDirectories(state.resolve("shop/0_0"));
        gate(false).configure(Map.of("state.dir", state.toString(), "application.id", "shop-g2"));
        check(!Files.exists(state.resolve("shop-g2")), "the local state is gone");
        check(Files.exists(other), "that of another application is not");
        passed("local state is deleted");
    }

    static void localStateInUseIsLeftAlone(final Path state) throws IOException {
        final Path store = Files.createDirectories(state.resolve("shop-g2/0_0"));
        final Path file = state.resolve("shop-g2/kafka-streams-process-metadata");
        try (FileChannel channel =
                    FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = channel.lock()) {
            check(lock.isValid(), "a lock as a running instance holds it");
            thrown(() -> {
                gate(false).configure(Map.of("state.dir", state.toString(), "application.id", "shop-g2"));
                return null;
            });
        }
        check(Files.exists(store), "the local state is still there");
        passed("local state in use is left alone");
    }

    static void localStateIsKept(final Path state) throws IOException {
        final Path store = Files.createDirectories(state.resolve("shop-g2/0_0/rocksdb/totals"));
        gate(true).configure(Map.of("state.dir", state.toString(), "application.id", "shop-g2"));
        check(Files.exists(store), "the local state is still there");
        passed("local state is kept if the gate's group says so");
    }

    /** A gate that asks no brokers whether local state is kept. */
    private static WarmUpGate gate(final boolean keeps) {
        return new WarmUpGate() {
            @Override
            protected boolean keepsState(final Map<String, ?> config) {
                return keeps;
            }
        };
    }

    private static Cluster assigned(final Map<String, Integer> wanted, final Map<String, Integer> present) {
        final List<PartitionInfo> all = new ArrayList<>();
        present.forEach((topic, count) -> {
            for (int partition = 0; partition < count; partition++) {
                all.add(new PartitionInfo(topic, partition, BROKER, new Node[] {BROKER}, new Node[] {BROKER}));
            }
        });
        assignor(wanted).assign(new Cluster("id", List.of(BROKER), all, Set.of(), Set.of()), null);
        return Spy.seen;
    }

    private static ConsumerPartitionAssignor assignor(final Map<String, Integer> wanted) {
        final GrownAssignor gated = new GrownAssignor();
        gated.configure(Map.of("kafka.rescale.gate.assignor", Spy.class.getName(), "kafka.rescale.gate.partitions", wanted,
            "some.setting", "x"));
        return gated;
    }

    private static String thrown(final Callable<?> action) {
        try {
            action.call();
        } catch (final Exception error) {
            return String.valueOf(error.getMessage());
        }
        throw new AssertionError("nothing was thrown");
    }

    private static void check(final boolean holds, final String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static void passed(final String name) {
        System.out.println(name);
    }

    /** Stands for the assignor of Kafka Streams. */
    public static final class Spy implements ConsumerPartitionAssignor, Configurable {
        static Cluster seen;
        static Map<String, ?> configured = Map.of();

        @Override
        public void configure(final Map<String, ?> config) {
            configured = config;
        }

        @Override
        public GroupAssignment assign(final Cluster metadata, final GroupSubscription subscriptions) {
            seen = metadata;
            return new GroupAssignment(Map.of());
        }

        @Override
        public List<RebalanceProtocol> supportedProtocols() {
            return List.of(RebalanceProtocol.COOPERATIVE);
        }

        @Override
        public short version() {
            return 7;
        }

        @Override
        public String name() {
            return "spy";
        }
    }
}
