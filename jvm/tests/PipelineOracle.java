import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Runs the programs in {@link PipelinePrograms} in Kafka Streams itself, without a broker.
 *
 * <p>It reads JSON objects, one per line, each with the name of a program and the records that the program gets.
 * For each, it prints a line with a JSON object: the description of the topology, and all records that the program
 * writes, by topic.
 */
public final class PipelineOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String APPLICATION = "app";
    private static final int LEVELS = 4;

    private PipelineOracle() {
    }

    /**
     * Runs the programs that standard input asks for.
     *
     * @param arguments the directory for local state
     */
    public static void main(final String[] arguments) throws IOException {
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(run(JSON.readTree(line), arguments[0]));
        }
    }

    private static ObjectNode run(final JsonNode scenario, final String directory) throws IOException {
        final StreamsBuilder builder = new StreamsBuilder();
        PipelinePrograms.ALL.get(scenario.get("program").asText()).accept(builder);
        final Topology topology = builder.build();
        final ObjectNode result = JSON.createObjectNode().put("describe", topology.describe().toString());
        final Properties settings = settings(directory, scenario.get("cache").asLong());
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, Instant.ofEpochMilli(0))) {
            pipe(driver, scenario.get("records"), scenario.get("commit").asInt());
            final ObjectNode topics = result.putObject("topics");
            for (final String topic : new TreeSet<>(driver.producedTopicNames())) {
                final String plain = topic.startsWith(APPLICATION + "-") ? topic.substring(APPLICATION.length() + 1) : topic;
                final ArrayNode records = topics.putArray(plain);
                driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                    .readRecordsToList().forEach(record -> records.add(written(record)));
            }
        }
        return result;
    }

    /**
     * Hands the records to a program.
     *
     * @param commit after how many records to commit; 0 commits after each, so that caches hold nothing back
     */
    private static void pipe(final TopologyTestDriver driver, final JsonNode records, final int commit) throws IOException {
        final RareCommits rare = commit > 0 ? new RareCommits(driver) : null;
        final Map<String, TestInputTopic<byte[], byte[]>> inputs = new HashMap<>();
        int piped = 0;
        for (final JsonNode record : records) {
            final byte[] key = bytes(record.get(1));
            final byte[] value = bytes(record.get(2));
            final RecordHeaders headers = new RecordHeaders();
            headers.add("h", bytes(record.get(4)));
            if (rare == null) {
                inputs.computeIfAbsent(record.get(0).asText(), topic ->
                    driver.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer()))
                    .pipeInput(new TestRecord<>(key, value, headers, record.get(3).asLong()));
                continue;
            }
            rare.pipe(record.get(0).asText(), record.get(3).asLong(), key, value, headers);
            if (++piped % commit == 0) {
                rare.commit();
            }
        }
        // What one commit hands on to a repartition topic stays in the caches behind that topic until the next
        // commit.
        for (int level = 0; rare != null && level < LEVELS; level++) {
            rare.commit();
        }
    }

    private static Properties settings(final String directory, final long cacheBytes) {
        final Properties settings = new Properties();
        settings.put("application.id", APPLICATION);
        settings.put("bootstrap.servers", "127.0.0.1:1");
        settings.put("statestore.cache.max.bytes", cacheBytes);
        settings.put("state.dir", directory);
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        // By default, a join emits records without a partner once a second by the wall clock, which stands still
        // here.
        settings.put(InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        return settings;
    }

    private static ArrayNode written(final TestRecord<byte[], byte[]> record) {
        final ArrayNode fields = JSON.createArrayNode().add(record.key()).add(record.value()).add(record.timestamp());
        final ArrayNode headers = fields.addArray();
        for (final Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return fields;
    }

    private static byte[] bytes(final JsonNode field) throws IOException {
        return field.isNull() ? null : field.binaryValue();
    }
}
