import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.AbstractMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.BiPredicate;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.StreamThread;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/**
 * Lets Kafka Streams' own assignor decide, for tests that compare it with the assignor of this project.
 *
 * <p>It first prints a line with a JSON object: to which states clients and threads may change from each state.
 * Then it reads JSON objects, one per line, each with what an assignor gets. For each it prints a line with the
 * decision, and with how long that took.
 */
public final class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Assignors() {
    }

    public static void main(final String[] arguments) throws Exception {
        System.out.println(states());
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(assign(JSON.readTree(line)));
        }
    }

    private static ObjectNode assign(final JsonNode scenario) {
        final AssignmentConfigs configs = new AssignmentConfigs(
            scenario.get("acceptable").asLong(), scenario.get("warm_ups").asInt(), scenario.get("standbys").asInt(),
            60_000L, List.of(), 0, 0, StreamsConfig.RACK_AWARE_ASSIGNMENT_STRATEGY_NONE);
        final Map<TaskId, Long> ends = offsets(scenario.get("stateful"));
        final Set<TaskId> all = new TreeSet<>(ends.keySet());
        scenario.get("stateless").forEach(task -> all.add(TaskId.parse(task.asText())));
        final Map<ProcessId, ClientState> clients = new TreeMap<>();
        final Map<ProcessId, String> names = new TreeMap<>();
        for (final JsonNode client : scenario.get("clients")) {
            // Kafka Streams orders clients by their UUIDs. So these are numbers in the order of the scenario.
            final ProcessId id = new ProcessId(new UUID(0, names.size()));
            names.put(id, client.get("id").asText());
            clients.put(id, new ClientState(Set.of(), Set.of(), new Lags(offsets(client.get("lags")), ends), Map.of(),
                client.get("threads").asInt(), id));
        }
        final RackAwareTaskAssignor noRacks = new RackAwareTaskAssignor(
            Cluster.empty(), Map.of(), Map.of(), Map.of(), Map.of(), null, configs, Time.SYSTEM);
        final long begin = System.nanoTime();
        final boolean probing = new HighAvailabilityTaskAssignor().assign(clients, all, ends.keySet(), noRacks, configs);
        final ObjectNode result = JSON.createObjectNode();
        result.put("nanoseconds", System.nanoTime() - begin);
        result.put("probing", probing);
        final ObjectNode found = result.putObject("clients");
        clients.forEach((id, state) -> {
            final ObjectNode has = found.putObject(names.get(id));
            write(has.putArray("active"), state.activeTasks());
            write(has.putArray("standby"), state.standbyTasks());
        });
        return result;
    }

    private static ObjectNode states() {
        final ObjectNode found = JSON.createObjectNode();
        write(found.putObject("client"), KafkaStreams.State.values(), KafkaStreams.State::isValidTransition);
        write(found.putObject("thread"), StreamThread.State.values(), StreamThread.State::isValidTransition);
        return found;
    }

    private static <S extends Enum<S>> void write(
            final ObjectNode node, final S[] states, final BiPredicate<S, S> mayChange) {
        for (final S from : states) {
            final ArrayNode to = node.putArray(from.name());
            for (final S state : states) {
                if (mayChange.test(from, state)) {
                    to.add(state.name());
                }
            }
        }
    }

    private static Map<TaskId, Long> offsets(final JsonNode node) {
        final Map<TaskId, Long> found = new HashMap<>();
        node.properties().forEach(entry -> found.put(TaskId.parse(entry.getKey()), entry.getValue().asLong()));
        return found;
    }

    private static void write(final ArrayNode array, final Set<TaskId> tasks) {
        new TreeSet<>(tasks).forEach(task -> array.add(task.toString()));
    }

    /**
     * The lag of every stateful task for a client. A task that the client does not have lags by the whole
     * changelog.
     *
     * <p>With many tasks and clients, a full map for each client would need too much memory.
     */
    private static final class Lags extends AbstractMap<TaskId, Long> {
        private final Map<TaskId, Long> own;
        private final Map<TaskId, Long> ends;

        private Lags(final Map<TaskId, Long> own, final Map<TaskId, Long> ends) {
            this.own = own;
            this.ends = ends;
        }

        @Override
        public Long get(final Object task) {
            final Long lag = own.get(task);
            return lag == null ? ends.get(task) : lag;
        }

        @Override
        public boolean containsKey(final Object task) {
            return ends.containsKey(task);
        }

        @Override
        public Set<Map.Entry<TaskId, Long>> entrySet() {
            return own.entrySet();
        }
    }
}
