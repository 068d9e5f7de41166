import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The programs of tests/support/processing/flight_programs.py, written for Kafka Streams.
 *
 * @param builder to which a program adds its topology
 * @param inputs what the names of the topics begin with that a program reads
 * @param outputs what the names of the topics begin with that a program writes
 */
record FlightPrograms(StreamsBuilder builder, String inputs, String outputs) {
    static final Map<String, Consumer<FlightPrograms>> ALL = new LinkedHashMap<>();
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> STRING = Serdes.String();
    private static final int DELAYED_MINUTES = 15;

    static {
        ALL.put("stateless", FlightPrograms::stateless);
        ALL.put("aggregates", FlightPrograms::aggregates);
        ALL.put("windows", FlightPrograms::windows);
        ALL.put("sessions", FlightPrograms::sessions);
        ALL.put("stream_table_joins", FlightPrograms::streamTableJoins);
        ALL.put("table_table_joins", FlightPrograms::tableTableJoins);
        ALL.put("stream_stream_joins", FlightPrograms::streamStreamJoins);
    }

    private static String field(final String value, final String name) {
        try {
            final JsonNode found = JSON.readTree(value).get(name);
            return found.isNull() ? null : found.asText();
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(value, error);
        }
    }

    private static int number(final String value, final String name) {
        final String found = field(value, name);
        return found == null ? 0 : Integer.parseInt(found);
    }

    private static boolean isDelayed(final String key, final String value) {
        return number(value, "arr_delay") > DELAYED_MINUTES;
    }

    private static String route(final String value) {
        return field(value, "carrier") + field(value, "flight") + " " + field(value, "origin") + "-" + field(value, "dest");
    }

    private static KeyValueMapper<String, String, String> by(final String name) {
        return (key, value) -> field(value, name);
    }

    private static String both(final String one, final String two) {
        return (one == null ? "-" : route(one)) + "|" + (two == null ? "-" : field(two, "model"));
    }

    private static String pair(final String one, final String two) {
        return (one == null ? "-" : route(one)) + "|" + (two == null ? "-" : route(two));
    }

    private static String longer(final String one, final String two) {
        return number(two, "distance") > number(one, "distance") ? two : one;
    }

    private static String miles(final String key, final String value, final String total) {
        final String[] parts = total.split(",");
        return Integer.parseInt(parts[0]) + 1 + "," + (Integer.parseInt(parts[1]) + number(value, "distance"));
    }

    private static String added(final String key, final String one, final String two) {
        final String[] ours = one.split(",");
        final String[] theirs = two.split(",");
        return Integer.parseInt(ours[0]) + Integer.parseInt(theirs[0]) + ","
            + (Integer.parseInt(ours[1]) + Integer.parseInt(theirs[1]));
    }

    private KStream<String, String> stream(final String topic) {
        return builder.stream(inputs + "-" + topic, Consumed.with(STRING, STRING));
    }

    private KTable<String, String> table(final String topic) {
        return builder.table(inputs + "-" + topic, Consumed.with(STRING, STRING));
    }

    private KTable<String, String> table(final String topic, final String store) {
        return builder.table(inputs + "-" + topic, Consumed.with(STRING, STRING), kept(store));
    }

    private String out(final String topic) {
        return outputs + "-" + topic;
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept(final String store) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(store).withKeySerde(STRING).withValueSerde(STRING);
    }

    private static Materialized<String, String, WindowStore<Bytes, byte[]>> inWindows(final String store) {
        return Materialized.<String, String, WindowStore<Bytes, byte[]>>as(store).withKeySerde(STRING).withValueSerde(STRING);
    }

    private static Materialized<String, String, SessionStore<Bytes, byte[]>> inSessions(final String store) {
        return Materialized.<String, String, SessionStore<Bytes, byte[]>>as(store).withKeySerde(STRING).withValueSerde(STRING);
    }

    private static Duration hours(final double number) {
        return Duration.ofMillis(Math.round(number * 3_600_000));
    }

    private void stateless() {
        final KStream<String, String> flights = stream("flights");
        flights.filter(FlightPrograms::isDelayed).mapValues(FlightPrograms::route)
            .selectKey((key, value) -> value.substring(value.length() - 3)).to(out("delayed"), Produced.with(STRING, STRING));
        flights.selectKey(by("carrier"))
            .repartition(Repartitioned.<String, String>as("by-carrier").withKeySerde(STRING).withValueSerde(STRING)
                .withNumberOfPartitions(3))
            .mapValues((key, value) -> key + ": " + route(value)).to(out("routes"), Produced.with(STRING, STRING));
    }

    private void aggregates() {
        final var grouped = stream("flights").selectKey(by("carrier"))
            .groupByKey(Grouped.<String, String>as("by-carrier").withKeySerde(STRING).withValueSerde(STRING));
        grouped.count(Materialized.as("flights")).toStream().to(out("flights"));
        grouped.reduce(FlightPrograms::longer, kept("longest")).toStream().to(out("longest"));
        grouped.aggregate(() -> "0,0", FlightPrograms::miles, kept("miles")).toStream().to(out("miles"));
    }

    private void windows() {
        final var departed = stream("departures").groupByKey();
        departed.windowedBy(TimeWindows.ofSizeWithNoGrace(hours(6)).advanceBy(hours(2))).count(Materialized.as("hopping"))
            .toStream().to(out("hopping"));
        final var tumbling = stream("arrivals").groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(hours(3), hours(0.5)));
        tumbling.aggregate(() -> "0,0", FlightPrograms::miles, inWindows("tumbling")).toStream().to(out("tumbling"));
        tumbling.reduce(FlightPrograms::longer, inWindows("longest")).toStream().to(out("longest"));
    }

    private void sessions() {
        final var arrived = stream("arrivals").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(hours(5), hours(1)));
        arrived.count(Materialized.as("visits")).toStream().to(out("visits"));
        arrived.reduce(FlightPrograms::longer, inSessions("longest")).toStream().to(out("longest"));
        arrived.aggregate(() -> "0,0", FlightPrograms::miles, FlightPrograms::added, inSessions("miles"))
            .toStream().to(out("miles"));
    }

    private void streamTableJoins() {
        final KTable<String, String> planes = table("planes", "planes");
        final KStream<String, String> byPlane = stream("flights").selectKey(by("tailnum"));
        final KStream<String, String> joined = byPlane.join(planes, FlightPrograms::both,
            Joined.<String, String, String>as("with-plane").withKeySerde(STRING).withValueSerde(STRING));
        joined.to(out("joined"), Produced.with(STRING, STRING));
        byPlane.leftJoin(planes, FlightPrograms::both,
            Joined.<String, String, String>as("with-any-plane").withKeySerde(STRING).withValueSerde(STRING))
            .to(out("left-joined"), Produced.with(STRING, STRING));
        joined.groupByKey(Grouped.with(STRING, STRING)).windowedBy(TimeWindows.ofSizeAndGrace(hours(1), hours(1.0 / 6)))
            .count(Materialized.as("per-hour")).toStream().to(out("per-hour"));
    }

    private void tableTableJoins() {
        final KTable<String, String> planes = table("planes");
        final KTable<String, String> latest = table("departures", "latest");
        latest.join(planes, FlightPrograms::both).toStream().to(out("joined"), Produced.with(STRING, STRING));
        latest.leftJoin(planes, FlightPrograms::both, kept("left")).toStream().to(out("left-joined"));
        latest.outerJoin(planes, FlightPrograms::both, kept("outer")).filter((key, value) -> value.startsWith("UA"))
            .toStream().to(out("outer-joined"));
        latest.filter(FlightPrograms::isDelayed, kept("delayed")).mapValues(FlightPrograms::route)
            .toStream().to(out("delayed"), Produced.with(STRING, STRING));
    }

    private void streamStreamJoins() {
        final KStream<String, String> departed = stream("departures");
        final KStream<String, String> arrived = stream("arrivals");
        final JoinWindows near = JoinWindows.ofTimeDifferenceAndGrace(hours(4), hours(1));
        departed.join(arrived, FlightPrograms::pair, near, joined().withName("inner"))
            .to(out("joined"), Produced.with(STRING, STRING));
        departed.leftJoin(arrived, FlightPrograms::pair, near, joined().withName("lefty"))
            .to(out("left-joined"), Produced.with(STRING, STRING));
        departed.outerJoin(arrived, FlightPrograms::pair,
            JoinWindows.ofTimeDifferenceAndGrace(hours(6), hours(1)).before(hours(0)), joined().withName("outer"))
            .to(out("outer-joined"), Produced.with(STRING, STRING));
    }

    private static StreamJoined<String, String, String> joined() {
        return StreamJoined.with(STRING, STRING, STRING);
    }
}
