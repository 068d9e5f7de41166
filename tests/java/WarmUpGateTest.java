import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.internals.StateDirectory;
import org.kafkarescale.GrownAssignor;
import org.kafkarescale.WarmUpGate;

/** Tests what the warm-up gate does without a broker, and prints the name of each test that has passed. */
public final class WarmUpGateTest {
    private static final Node BROKER = new Node(1, "localhost", 9092);

    private WarmUpGateTest() {}

    public static void main(final String[] arguments) throws Exception {
        // The launcher of single source files sets a loader that does not know the spy. Kafka would use that.
        Thread.currentThread().setContextClassLoader(WarmUpGateTest.class.getClassLoader());
        final Path directory = Path.of(arguments[0]);
        inputsAreSeenWithThePartitionsThatTheyWillHave();
        theAssignorOfKafkaStreamsDecides();
        aRecordIsRefused();
        theStreamsProtocolIsRefused();
        aSecondApplicationIsRefused(directory);
        aProgramThatHasNotConfiguredItsGateIsToldSo();
        withoutItsGroupNoConsumerIsMade(directory);
        localStateIsDeleted(directory.resolve("first"));
        localStateBehindALinkIsDeleted(directory.resolve("second"));
        localStateInUseIsLeftAlone(directory.resolve("third"));
        localStateIsKept(directory.resolve("fourth"));
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

    static void aSecondApplicationIsRefused(final Path directory) {
        final WarmUpGate gate = gate(false);
        gate.configure(settings(directory));
        gate.configure(settings(directory));
        final String message = thrown(() -> {
            gate.configure(Map.of("state.dir", directory.toString(), "application.id", "orders"));
            return null;
        });
        check(message.contains("shop-g2 and orders"), message);
        passed("a second application is refused");
    }

    static void aProgramThatHasNotConfiguredItsGateIsToldSo() {
        final String message = thrown(() -> new WarmUpGate().getAdmin(Map.of("bootstrap.servers", "localhost:1")));
        check(message.contains("expected configure(...) to be called"), message);
        passed("a program that has not configured its gate is told so");
    }

    static void withoutItsGroupNoConsumerIsMade(final Path directory) {
        final Map<String, Object> config = Map.of("bootstrap.servers", "localhost:1", "group.id", "shop-g2",
            "default.api.timeout.ms", 300, "request.timeout.ms", 200,
            "partition.assignment.strategy", Spy.class.getName());
        final WarmUpGate gate = gate(false);
        gate.configure(settings(directory));
        gate.getAdmin(config).close();
        // A program may try again. Then the gate must not go on with the inputs as they are now.
        for (int tries = 0; tries < 2; tries++) {
            final String message = thrown(() -> gate.getConsumer(config));
            check(message.contains("group shop-g2-gate") && message.contains("READ"), message);
        }
        check(threads("shop-g2-gate").isEmpty(), "threads that are left: " + threads("shop-g2-gate"));
        passed("without its group no consumer is made");
    }

    static void localStateIsDeleted(final Path state) throws IOException {
        final Path store = oldState(state.resolve("shop-g2"));
        final Path other = Files.createDirectories(state.resolve("shop/0_0"));
        // A file of properties keeps white space at the end of a value, and Kafka Streams drops it.
        gate(false).configure(Map.of("state.dir", state + " ", "application.id", "shop-g2\t"));
        check(!Files.exists(store) && !Files.exists(state.resolve("shop-g2/0_0")), "the local state is gone");
        check(Files.exists(other), "that of another application is not");
        passed("local state is deleted");
    }

    static void localStateBehindALinkIsDeleted(final Path state) throws IOException {
        final Path store = oldState(state.resolve("volume"));
        Files.createSymbolicLink(state.resolve("shop-g2"), state.resolve("volume"));
        gate(false).configure(settings(state));
        check(!Files.exists(store), "the local state is gone");
        check(Files.isDirectory(state.resolve("shop-g2")), "the link is still there");
        passed("local state behind a link is deleted");
    }

    static void localStateInUseIsLeftAlone(final Path state) throws IOException {
        final Path store = oldState(state.resolve("shop-g2"));
        final Map<String, String> config = new HashMap<>(settings(state));
        config.put("bootstrap.servers", "localhost:1");
        final StateDirectory used = new StateDirectory(new StreamsConfig(config), Time.SYSTEM, true, false);
        used.initializeProcessId();
        final String message = thrown(() -> {
            gate(false).configure(settings(state));
            return null;
        });
        check(message.contains("another instance that uses " + state.resolve("shop-g2")), message);
        check(Files.exists(store), "the local state is still there");
        used.close();
        gate(false).configure(settings(state));
        check(!Files.exists(store), "the local state is gone");
        passed("local state in use is left alone");
    }

    static void localStateIsKept(final Path state) throws IOException {
        final Path store = oldState(state.resolve("shop-g2"));
        gate(true).configure(settings(state));
        check(Files.exists(store), "the local state is still there");
        passed("local state is kept if the gate's group says so");
    }

    private static Map<String, String> settings(final Path state) {
        return Map.of("state.dir", state.toString(), "application.id", "shop-g2");
    }

    /** Makes a file as an earlier attempt leaves it, and returns it. */
    private static Path oldState(final Path directory) throws IOException {
        final Path store = Files.createDirectories(directory.resolve("0_0/rocksdb/totals"));
        return Files.writeString(store.resolve("CURRENT"), "state of an earlier attempt");
    }

    private static List<String> threads(final String name) {
        return Thread.getAllStackTraces().keySet().stream().map(Thread::getName)
            .filter(each -> each.contains(name)).toList();
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
