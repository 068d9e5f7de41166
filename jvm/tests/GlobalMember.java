import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/**
 * A Kafka Streams instance with a global table: writes of every record what the topic {@code INPUT-rates} says of its
 * key, or {@code none}.
 *
 * <p>Prints every state that it enters. SIGTERM closes it cleanly.
 *
 * <pre>java GlobalMember.java SERVERS APPLICATION_ID INPUT OUTPUT STATE_DIRECTORY [name=value]...</pre>
 */
public class GlobalMember {
    private GlobalMember() {
    }

    public static void main(final String[] arguments) {
        final var settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", arguments[1]);
        settings.put("state.dir", Path.of(arguments[4]).toString());
        for (int i = 5; i < arguments.length; i++) {
            final String[] setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        final var builder = new StreamsBuilder();
        final var strings = Consumed.with(Serdes.String(), Serdes.String());
        final var rates = builder.globalTable(arguments[2] + "-rates", strings);
        builder.stream(arguments[2], strings)
            .leftJoin(rates, (key, value) -> key, (value, rate) -> rate == null ? "none" : rate)
            .to(arguments[3], Produced.with(Serdes.String(), Serdes.String()));
        final var streams = new KafkaStreams(builder.build(settings), settings);
        streams.setStateListener((state, before) -> System.out.println(state));
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
