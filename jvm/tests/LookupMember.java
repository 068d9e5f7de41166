import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.Produced;

/**
 * For every record, writes what a table says about the record's key, or {@code none}. The table is read from the
 * topic {@code <input>-rates}. With the setting {@code rates=global}, every instance has the whole table.
 * Otherwise every task has its partition of it.
 */
public final class LookupMember {
    private LookupMember() {
    }

    public static void main(final String[] arguments) throws InterruptedException {
        Member.run(arguments, LookupMember::topology);
    }

    private static Topology topology(final Member member, final Properties settings) {
        final var builder = new StreamsBuilder();
        final var strings = Consumed.with(Serdes.String(), Serdes.String());
        final var records = builder.stream(member.input(), strings);
        final String rates = member.input() + "-rates";
        final var answers = "global".equals(settings.remove("rates"))
            ? records.leftJoin(builder.globalTable(rates, strings), (key, value) -> key, LookupMember::answer)
            : records.leftJoin(builder.table(rates, strings), LookupMember::answer,
                Joined.with(Serdes.String(), Serdes.String(), Serdes.String()));
        answers.to(member.output(), Produced.with(Serdes.String(), Serdes.String()));
        return builder.build(settings);
    }

    private static String answer(final String value, final String rate) {
        return rate == null ? "none" : rate;
    }
}
