import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
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
 * What Kafka Streams' own assignor decides, for tests that compare it with this project's: a JSON object per line in,
 * one out, with the time of the call. The first line out has the states of clients and threads, and their changes.
 */
public final class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();

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
            // UUIDs are compared as numbers, so that small ones are in the order in which the clients are given.
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
        for (final KafkaStreams.State from : KafkaStreams.State.values()) {
            final ArrayNode to = found.withObject("/client").putArray(from.name());
            for (final KafkaStreams.State state : KafkaStreams.State.values()) {
                if (from.isValidTransition(state)) {
                    to.add(state.name());
                }
            }
        }
        for (final StreamThread.State from : StreamThread.State.values()) {
            final ArrayNode to = found.withObject("/thread").putArray(from.name());
            for (final StreamThread.State state : StreamThread.State.values()) {
                if (from.isValidTransition(state)) {
                    to.add(state.name());
                }
            }
        }
        return found;
    }

    private static Map<TaskId, Long> offsets(final JsonNode node) {
        final Map<TaskId, Long> found = new HashMap<>();
        node.properties().forEach(entry -> found.put(TaskId.parse(entry.getKey()), entry.getValue().asLong()));
        return found;
    }

    private static void write(final ArrayNode array, final Set<TaskId> tasks) {
        new ArrayList<>(new TreeSet<>(tasks)).forEach(task -> array.add(task.toString()));
    }

    /** The lag of every stateful task, without a map of all of them for each client. */
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
