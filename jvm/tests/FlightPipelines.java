import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;

/**
 * Runs the programs in {@link FlightPrograms} on real brokers, each as an application of its own.
 *
 * <pre>java FlightPipelines SERVERS INPUTS APPLICATIONS STATE_DIRECTORY PROGRAM...</pre>
 *
 * <p>An application's id is {@code APPLICATIONS-PROGRAM}, and the names of its outputs begin with that. All of
 * them run until the standard input of this process is closed.
 */
public final class FlightPipelines {
    private FlightPipelines() {
    }

    /** Prints a line once it has started all of them. */
    public static void main(final String[] arguments) throws Exception {
        final List<KafkaStreams> running = new ArrayList<>();
        for (int i = 4; i < arguments.length; i++) {
            final String application = arguments[2] + "-" + arguments[i];
            final StreamsBuilder builder = new StreamsBuilder();
            FlightPrograms.ALL.get(arguments[i]).accept(new FlightPrograms(builder, arguments[1], application));
            final KafkaStreams streams = new KafkaStreams(builder.build(), settings(arguments[0], application, arguments[3]));
            streams.setUncaughtExceptionHandler(error -> {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
                return null;
            });
            streams.start();
            running.add(streams);
        }
        System.out.println("started");
        while (System.in.read() >= 0) {
        }
        running.forEach(KafkaStreams::close);
    }

    private static Properties settings(final String servers, final String application, final String directory) {
        final Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("application.id", application);
        settings.put("state.dir", Path.of(directory).toString());
        settings.put("statestore.cache.max.bytes", 0);
        settings.put("commit.interval.ms", 200);
        settings.put("auto.offset.reset", "earliest");
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        // By default, a join emits records without a partner once a second by the wall clock, whatever the input
        // is.
        settings.put(InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        return settings;
    }
}
