import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
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
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** The programs of tests/support/processing/pipeline_programs.py, written for Kafka Streams. */
final class PipelinePrograms {
    static final Map<String, Consumer<StreamsBuilder>> ALL = new LinkedHashMap<>();
    private static final Serde<String> STRING = Serdes.String();
    private static final Serde<Long> LONG = Serdes.Long();

    static {
        ALL.put("stateless", PipelinePrograms::stateless);
        ALL.put("repartition", PipelinePrograms::repartition);
        ALL.put("count", PipelinePrograms::count);
        ALL.put("reduce", PipelinePrograms::reduce);
        ALL.put("aggregate", PipelinePrograms::aggregate);
        ALL.put("tables", PipelinePrograms::tables);
        ALL.put("stream_table_joins", PipelinePrograms::streamTableJoins);
        ALL.put("stream_table_join_of_keyed_only", PipelinePrograms::streamTableJoinOfKeyedOnly);
        ALL.put("table_table_joins", PipelinePrograms::tableTableJoins);
        ALL.put("joins_of_joins", PipelinePrograms::joinsOfJoins);
        ALL.put("windows", PipelinePrograms::windows);
        ALL.put("sessions", PipelinePrograms::sessions);
        ALL.put("windowed_tables", PipelinePrograms::windowedTables);
        ALL.put("stream_stream_joins", PipelinePrograms::streamStreamJoins);
        ALL.put("narrow_stream_stream_joins", PipelinePrograms::narrowStreamStreamJoins);
        ALL.put("repartitioned_joins", PipelinePrograms::repartitionedJoins);
    }

    private PipelinePrograms() {
    }

    private static KStream<String, String> left(final StreamsBuilder builder) {
        return builder.stream("left", Consumed.with(STRING, STRING));
    }

    private static KStream<String, String> right(final StreamsBuilder builder) {
        return builder.stream("right", Consumed.with(STRING, STRING));
    }

    private static String first(final String value) {
        return value == null ? null : value.substring(0, 1);
    }

    private static String moved(final String key, final String value) {
        return "zz".equals(value) ? "m" : key;
    }

    private static void stateless(final StreamsBuilder builder) {
        final KStream<String, String> stream = left(builder);
        stream.filter((k, v) -> v != null && !v.contains("a")).mapValues(v -> v + "!").to("out");
        stream.filter((k, v) -> k != null, Named.as("keyed")).mapValues((k, v) -> k + v, Named.as("joined"))
            .to("out-2", Produced.<String, String>as("sink").withKeySerde(STRING).withValueSerde(STRING));
        builder.stream(List.of("right", "third"), Consumed.with(STRING, STRING))
            .selectKey((k, v) -> first(v)).to("out", Produced.with(STRING, STRING));
        left(builder).filter((k, v) -> k == null).to("out-3");
    }

    private static void repartition(final StreamsBuilder builder) {
        left(builder).selectKey((k, v) -> first(v)).repartition(Repartitioned.with(STRING, STRING)).to("out");
        left(builder).repartition(Repartitioned.<String, String>as("again").withNumberOfPartitions(3)).to("out-2");
    }

    private static void count(final StreamsBuilder builder) {
        left(builder).filter((k, v) -> v != null).selectKey((k, v) -> first(v)).groupByKey(Grouped.with(STRING, STRING))
            .count(Materialized.as("counts")).toStream().to("out", Produced.with(STRING, LONG));
        left(builder).groupByKey().count().toStream().to("out-2");
        left(builder).selectKey((k, v) -> first(v)).groupByKey(Grouped.with(STRING, STRING)).count().toStream().to("out-3");
    }

    private static void reduce(final StreamsBuilder builder) {
        final KGroupedStream<String, String> grouped = left(builder).groupByKey();
        grouped.reduce((a, v) -> v.equals("zz") ? null : a + v).toStream().to("out");
        grouped.reduce((a, v) -> v, Materialized.as("last")).toStream().to("out-2");
    }

    private static void aggregate(final StreamsBuilder builder) {
        final KGroupedStream<String, String> grouped = left(builder).selectKey((k, v) -> first(v), Named.as("by-first"))
            .groupByKey(Grouped.<String, String>as("grouping").withKeySerde(STRING).withValueSerde(STRING));
        grouped.aggregate(() -> "", (k, v, a) -> a.length() > 20 ? null : a + k + v,
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("all").withKeySerde(STRING).withValueSerde(STRING))
            .toStream(Named.as("stream")).to("out");
        grouped.aggregate(() -> 0L, (k, v, a) -> a + v.length(), Named.as("lengths"), Materialized.with(STRING, LONG))
            .toStream().to("out-2");
    }

    private static KTable<String, String> table(final StreamsBuilder builder, final String topic) {
        return builder.table(topic, Consumed.with(STRING, STRING));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> strings(final String store) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(store).withKeySerde(STRING).withValueSerde(STRING);
    }

    private static String both(final Object one, final Object two) {
        return (one == null ? "-" : one) + "|" + (two == null ? "-" : two);
    }

    private static void tables(final StreamsBuilder builder) {
        final KTable<String, String> table = table(builder, "left");
        table.toStream().to("out");
        table.filter((k, v) -> v.contains("a"), strings("only-filtered")).toStream().to("out-5");
        final KTable<String, String> kept = builder.table("right",
            Consumed.with(STRING, STRING).withName("kept-table"), strings("kept"));
        kept.filter((k, v) -> v.contains("a")).mapValues(v -> v + "?").toStream().to("out-2");
        kept.filter((k, v) -> v.contains("b"), Named.as("bs"), strings("filtered"))
            .toStream(Named.as("b-stream")).to("out-3");
        kept.mapValues((k, v) -> k + v, strings("mapped")).filter((k, v) -> v.contains("c")).toStream().to("out-4");
    }

    private static void streamTableJoins(final StreamsBuilder builder) {
        final KTable<String, String> table = table(builder, "right");
        final KStream<String, String> stream = left(builder);
        stream.join(table, PipelinePrograms::both).to("out");
        stream.leftJoin(table.filter((k, v) -> v.contains("a")), PipelinePrograms::both,
            Joined.<String, String, String>as("lefty")).to("out-2");
        final KStream<String, String> keyed = stream.selectKey((k, v) -> moved(k, v));
        keyed.join(table, PipelinePrograms::both, Joined.keySerde(STRING)).mapValues(v -> (long) v.length())
            .to("out-3", Produced.with(STRING, LONG));
        keyed.leftJoin(table, PipelinePrograms::both, Joined.<String, String, String>as("named").withKeySerde(STRING))
            .to("out-4");
        keyed.join(table.mapValues(v -> v + "!"), PipelinePrograms::both, Joined.keySerde(STRING)).to("out-5");
    }

    private static void streamTableJoinOfKeyedOnly(final StreamsBuilder builder) {
        final KTable<String, Long> counts = left(builder).groupByKey().count(Materialized.as("counts"));
        left(builder).join(counts, (v, n) -> n, Joined.<String, String, Long>as("own")).to("out", Produced.with(STRING, LONG));
        right(builder).selectKey((k, v) -> moved(k, v)).join(counts, (v, n) -> n, Joined.keySerde(STRING))
            .to("out-2", Produced.with(STRING, LONG));
    }

    private static void tableTableJoins(final StreamsBuilder builder) {
        final KTable<String, String> one = table(builder, "left");
        final KTable<String, String> two = table(builder, "right");
        one.join(two, PipelinePrograms::both).toStream().to("out");
        one.leftJoin(two, PipelinePrograms::both, strings("left-joined")).toStream().to("out-2");
        one.outerJoin(two, PipelinePrograms::both, Named.as("outer"), strings("outer-joined")).toStream().to("out-3");
        one.leftJoin(two, PipelinePrograms::both).toStream().to("out-4");
        one.outerJoin(two, PipelinePrograms::both).toStream().to("out-5");
    }

    private static void joinsOfJoins(final StreamsBuilder builder) {
        final KTable<String, String> one = table(builder, "left");
        final KTable<String, String> two = table(builder, "right");
        final KTable<String, String> three = table(builder, "third").filter((k, v) -> !v.contains("z"));
        one.join(two, PipelinePrograms::both).leftJoin(three, PipelinePrograms::both).toStream().to("out");
        one.leftJoin(two, PipelinePrograms::both).outerJoin(three, PipelinePrograms::both, strings("all")).toStream()
            .to("out-2");
        one.outerJoin(two, PipelinePrograms::both).join(three, PipelinePrograms::both, Named.as("last"))
            .filter((k, v) -> v.contains("a")).toStream().to("out-3");
        builder.stream("fourth", Consumed.with(STRING, STRING)).groupByKey().count().filter((k, n) -> n % 2 == 1)
            .leftJoin(one, (n, v) -> both(n, v)).toStream().to("out-4");
    }

    private static Duration seconds(final long number) {
        return Duration.ofSeconds(number);
    }

    private static void windows(final StreamsBuilder builder) {
        final KGroupedStream<String, String> grouped = left(builder).groupByKey();
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(seconds(10), seconds(15))).count(Materialized.as("tumbling"))
            .toStream().to("out");
        final var hopping = grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(seconds(30)).advanceBy(seconds(7)));
        hopping.reduce((a, v) -> last(a + v)).toStream().to("out-2");
        hopping.aggregate(() -> "", (k, v, a) -> head(k + a + v),
            Materialized.<String, String, WindowStore<Bytes, byte[]>>as("joined").withKeySerde(STRING)
                .withValueSerde(STRING).withRetention(seconds(100)))
            .filter((k, v) -> k.window().start() % 2 == 0 && v.contains("b")).toStream().to("out-3");
        left(builder).selectKey((k, v) -> first(v)).groupByKey(Grouped.with(STRING, STRING))
            .windowedBy(TimeWindows.ofSizeWithNoGrace(seconds(5))).count(Named.as("by-five"))
            .mapValues(String::valueOf).toStream().to("out-4");
    }

    private static String last(final String text) {
        return text.substring(Math.max(0, text.length() - 20));
    }

    private static String head(final String text) {
        return text.substring(0, Math.min(30, text.length()));
    }

    private static void sessions(final StreamsBuilder builder) {
        final KGroupedStream<String, String> grouped = left(builder).filter((k, v) -> v != null).groupByKey();
        final var visits = grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(seconds(8), seconds(10)));
        visits.count(Materialized.as("visits")).toStream().to("out");
        visits.reduce((a, v) -> a + v).toStream().to("out-2");
        grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(seconds(20)))
            .aggregate(() -> "", (k, v, a) -> a + v, (k, one, two) -> one + "+" + two,
                Materialized.<String, String, SessionStore<Bytes, byte[]>>as("long").withKeySerde(STRING)
                    .withValueSerde(STRING))
            .filter((k, v) -> v.contains("a")).toStream().to("out-3");
    }

    private static void windowedTables(final StreamsBuilder builder) {
        final TimeWindows near = TimeWindows.ofSizeAndGrace(seconds(20), seconds(30)).advanceBy(seconds(10));
        final var one = left(builder).groupByKey().windowedBy(near).count(Materialized.as("lefts"));
        final var two = right(builder).groupByKey().windowedBy(near).count(Materialized.as("rights"));
        one.join(two, PipelinePrograms::both).toStream().to("out");
        final SessionWindows visits = SessionWindows.ofInactivityGapAndGrace(seconds(30), seconds(30));
        final var three = left(builder).groupByKey().windowedBy(visits).count(Materialized.as("left-visits"));
        final var four = right(builder).groupByKey().windowedBy(visits).count(Materialized.as("right-visits"));
        three.leftJoin(four, PipelinePrograms::both).toStream().to("out-2");
    }

    private static StreamJoined<String, String, String> joined() {
        return StreamJoined.with(STRING, STRING, STRING);
    }

    private static void streamStreamJoins(final StreamsBuilder builder) {
        final KStream<String, String> one = left(builder);
        final KStream<String, String> two = right(builder);
        final JoinWindows near = JoinWindows.ofTimeDifferenceAndGrace(seconds(5), seconds(20));
        one.join(two, PipelinePrograms::both, near, joined()).to("out");
        one.leftJoin(two, PipelinePrograms::both, near, joined().withName("lefty")).to("out-2");
        one.outerJoin(two, PipelinePrograms::both, near, joined().withStoreName("kept")).to("out-3");
    }

    private static void narrowStreamStreamJoins(final StreamsBuilder builder) {
        final KStream<String, String> one = left(builder);
        final KStream<String, String> two = right(builder);
        final JoinWindows earlier = JoinWindows.ofTimeDifferenceWithNoGrace(seconds(12)).after(seconds(0));
        one.join(two, PipelinePrograms::both, earlier, joined().withName("named").withStoreName("named-store")).to("out");
        one.leftJoin(two, PipelinePrograms::both, earlier, joined()).to("out-2");
        one.outerJoin(two, PipelinePrograms::both,
            JoinWindows.ofTimeDifferenceAndGrace(seconds(9), seconds(3)).before(seconds(1)), joined()).to("out-3");
        one.join(one, PipelinePrograms::both, JoinWindows.ofTimeDifferenceWithNoGrace(seconds(2)), joined()).to("out-4");
    }

    private static void repartitionedJoins(final StreamsBuilder builder) {
        final KStream<String, String> one = left(builder).selectKey((k, v) -> moved(k, v));
        final KStream<String, String> two = right(builder);
        final JoinWindows near = JoinWindows.ofTimeDifferenceWithNoGrace(seconds(5));
        one.join(two, PipelinePrograms::both, near, joined()).to("out");
        one.leftJoin(two, PipelinePrograms::both, near, joined().withName("lefty").withStoreName("kept")).to("out-2");
        two.outerJoin(one, PipelinePrograms::both, near, joined()).to("out-3");
    }
}
