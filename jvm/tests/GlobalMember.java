import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/**
 * An instance with a global table: writes of every record what the topic {@code INPUT-rates} says of its key, or
 * {@code none}.
 */
public final class GlobalMember {
    private GlobalMember() {
    }

    public static void main(final String[] arguments) throws InterruptedException {
        Member.run(arguments, GlobalMember::topology);
    }

    private static Topology topology(final Member member, final Properties settings) {
        final var builder = new StreamsBuilder();
        final var strings = Consumed.with(Serdes.String(), Serdes.String());
        final var rates = builder.globalTable(member.input() + "-rates", strings);
        builder.stream(member.input(), strings)
            .leftJoin(rates, (key, value) -> key, (value, rate) -> rate == null ? "none" : rate)
            .to(member.output(), Produced.with(Serdes.String(), Serdes.String()));
        return builder.build(settings);
    }
}
