import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.namedtopology.KafkaStreamsNamedTopologyWrapper;
import org.apache.kafka.streams.processor.internals.namedtopology.NamedTopologyBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * Prints many topologies, each as text and as facts, so that a test can compare a parser of the text with the
 * facts.
 *
 * <p>The text is that of {@code Topology#describe()}. The facts come from Kafka Streams' own
 * {@code TopologyDescription}.
 */
public final class PrintTopologies {
    private static final Duration HOUR = Duration.ofHours(1);

    private PrintTopologies() {
    }

    public static void main(final String[] arguments) {
        final Map<String, Function<StreamsBuilder, Topology>> all = new LinkedHashMap<>();
        all.put("stateless", dsl(b -> b.stream("in").mapValues(v -> v).to("out")));
        all.put("several inputs of one source", dsl(b -> b.stream(Set.of("left", "right")).to("out")));
        all.put("counts behind a repartition", dsl(PrintTopologies::counts));
        all.put("enforced count", dsl(b -> strings(b, "in")
            .repartition(Repartitioned.<String, String>as("by-four").withNumberOfPartitions(4)).groupByKey().count()));
        all.put("a global table", dsl(b -> b.<String, String>stream("in")
            .join(b.<String, String>globalTable("rates", Materialized.as("rates-store")), (k, v) -> k, (v, r) -> v + r)
            .to("out")));
        all.put("windows, sessions, suppression", dsl(PrintTopologies::windows));
        all.put("joins of streams", dsl(PrintTopologies::joins));
        all.put("a foreign-key join", dsl(PrintTopologies::foreignKey));
        all.put("branches, merge, two sub-topologies", dsl(PrintTopologies::branches));
        all.put("a sink that chooses", dsl(b -> b.<String, String>stream("in").to((k, v, context) -> "out-" + k)));
        all.put("an optimised table", b -> {
            b.table("in", Materialized.as("table")).toStream().to("out");
            final var optimised = new Properties();
            optimised.put("topology.optimization", "all");
            return b.build(optimised);
        });
        all.put("the processor API", b -> processors());
        all.put("a pattern", dsl(b -> b.stream(Pattern.compile("in-(a|b)[0-9]+")).to("out")));
        all.forEach((name, build) -> print(name, build.apply(new StreamsBuilder()).describe()));
        named();
    }

    /** Two topologies in one runtime read one input topic, as in the shared runtimes of ksqlDB. */
    private static void named() {
        final var settings = new Properties();
        settings.putAll(Map.of("application.id", "shared", "bootstrap.servers", "127.0.0.1:1"));
        try (var runtime = new KafkaStreamsNamedTopologyWrapper(settings)) {
            final NamedTopologyBuilder orders = runtime.newNamedTopologyBuilder("orders");
            counts(orders);
            final NamedTopologyBuilder refunds = runtime.newNamedTopologyBuilder("refunds");
            strings(refunds, "lines").groupByKey().count(Materialized.as("counts"));
            System.out.println("=== named topologies");
            final var built = List.of(orders.build(), refunds.build());
            built.forEach(topology -> System.out.print(topology.describe()));
            built.forEach(topology -> facts(topology.describe()));
        }
    }

    private static Function<StreamsBuilder, Topology> dsl(final Consumer<StreamsBuilder> program) {
        return builder -> {
            program.accept(builder);
            return builder.build();
        };
    }

    private static KStream<String, String> strings(final StreamsBuilder builder, final String topic) {
        return builder.stream(topic, Consumed.with(Serdes.String(), Serdes.String()));
    }

    private static void counts(final StreamsBuilder builder) {
        strings(builder, "lines").groupBy((k, v) -> v, Grouped.as("by-word")).count(Materialized.as("counts"))
            .toStream().to("totals", Produced.as("totals-sink"));
        strings(builder, "lines").groupBy((k, v) -> v).count();
    }

    private static void windows(final StreamsBuilder builder) {
        final var grouped = strings(builder, "in").groupByKey();
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(HOUR, HOUR)).count(Materialized.as("hourly"))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closed"))
            .toStream().to("hours");
        grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(HOUR)).count(Materialized.as("visits"));
    }

    private static void joins(final StreamsBuilder builder) {
        final KStream<String, String> left = strings(builder, "left");
        left.join(strings(builder, "right"), (l, r) -> l + r, JoinWindows.ofTimeDifferenceWithNoGrace(HOUR)).to("inner");
        left.outerJoin(strings(builder, "right"), (l, r) -> l + r, JoinWindows.ofTimeDifferenceWithNoGrace(HOUR),
            StreamJoined.as("outer")).to("outer");
    }

    private static void foreignKey(final StreamsBuilder builder) {
        final KTable<String, String> orders = builder.table("orders", Consumed.with(Serdes.String(), Serdes.String()));
        final KTable<String, String> customers = builder.table("customers");
        orders.join(customers, order -> order, (o, c) -> o + c, Materialized.as("joined")).toStream().to("out");
    }

    private static void branches(final StreamsBuilder builder) {
        final var branches = strings(builder, "a").split().branch((k, v) -> v.isEmpty()).defaultBranch();
        branches.values().iterator().next().merge(strings(builder, "b")).to("c");
        strings(builder, "d").to("e");
    }

    private static Topology processors() {
        final var store = Stores.keyValueStoreBuilder(
            Stores.persistentKeyValueStore("shared"), Serdes.String(), Serdes.String());
        final var unlogged = Stores.keyValueStoreBuilder(
            Stores.inMemoryKeyValueStore("unlogged"), Serdes.String(), Serdes.String()).withLoggingDisabled();
        final ProcessorSupplier<String, String, String, String> supplier = Nothing::new;
        return new Topology()
            .addSource("first", new StringDeserializer(), new StringDeserializer(), "in-1")
            .addSource("second", new StringDeserializer(), new StringDeserializer(), "in-2", "in-3")
            .addProcessor("one", supplier, "first")
            .addProcessor("name with spaces", supplier, "one")
            .addProcessor("two-of-them", supplier, "name with spaces", "second")
            .addStateStore(store, "one", "two-of-them")
            .addStateStore(unlogged, "two-of-them")
            .addSink("fixed", "out", new StringSerializer(), new StringSerializer(), "two-of-them")
            .addSink("chosen", (k, v, context) -> "out-" + k, new StringSerializer(), new StringSerializer(), "one");
    }

    private static final class Nothing implements Processor<String, String, String, String> {
        @Override
        public void process(final Record<String, String> record) {
        }
    }

    private static void print(final String name, final TopologyDescription description) {
        System.out.println("=== " + name);
        System.out.println(description);
        facts(description);
    }

    private static void facts(final TopologyDescription description) {
        for (final var global : description.globalStores()) {
            System.out.println(fact("global", global.id(), global.source().topicSet(), global.processor().stores()));
        }
        for (final var sub : description.subtopologies()) {
            final Set<String> sources = new TreeSet<>();
            final Set<String> stores = new TreeSet<>();
            final Set<String> sinks = new TreeSet<>();
            final Set<String> dynamic = new TreeSet<>();
            for (final var node : sub.nodes()) {
                if (node instanceof TopologyDescription.Source source && source.topicSet() != null) {
                    sources.addAll(source.topicSet());
                } else if (node instanceof TopologyDescription.Processor processor) {
                    stores.addAll(processor.stores());
                } else if (node instanceof TopologyDescription.Sink sink) {
                    (sink.topic() == null ? dynamic : sinks).add(sink.topic() == null ? sink.name() : sink.topic());
                }
            }
            System.out.println(fact("streams", sub.id(), sources, stores, sinks, dynamic));
        }
    }

    /** Returns a line of facts: a kind, a number, and sets of names in order. */
    @SafeVarargs
    private static String fact(final String kind, final int id, final Set<String>... sets) {
        final var joined = Arrays.stream(sets).map(s -> String.join(",", new TreeSet<>(s)));
        return "!" + kind + "|" + id + "|" + joined.collect(Collectors.joining("|"));
    }
}
