import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.kafkarescale.FencedAfterAbort;
import org.kafkarescale.HoldGate;

/**
 * Tests what the suppliers that wrap another one say to settings, and prints the name of each test that has
 * passed.
 */
public final class HeldSettingsTest {
    private static final String SECONDS = "kafka.rescale.hold.seconds";
    private static final String HELD = "kafka.rescale.hold.supplier";
    private static final String FENCED = "kafka.rescale.fenced.supplier";

    private HeldSettingsTest() {}

    public static void main(final String[] arguments) {
        // A file of properties keeps white space at the end of a value, and Kafka Streams drops it.
        configure(new HoldGate(), Map.of(SECONDS, "1800 ", HELD, FencedAfterAbort.class.getName() + " "));
        configure(new FencedAfterAbort(), Map.of());
        passed("proper settings are taken");

        for (final String seconds : new String[] {"30m", "-1", "0", "1.5", "", "99999999999999999999"}) {
            refused(new HoldGate(), Map.of(SECONDS, seconds), SECONDS + ": found " + seconds + "; expected");
        }
        passed("a wait that is no number of seconds is refused");

        refused(new HoldGate(), Map.of(HELD, "com.acme.Gone"), HELD + ": found no class com.acme.Gone");
        refused(new HoldGate(), Map.of(HELD, "java.lang.String"), HELD + ": found java.lang.String; expected");
        refused(new HoldGate(), Map.of(HELD, HoldGate.class), HELD + ": found org.kafkarescale.HoldGate; expected");
        refused(new FencedAfterAbort(), Map.of(FENCED, FencedAfterAbort.class.getName()), "not the gate itself");
        passed("a class that is no other supplier is refused");

        final HoldGate gate = new HoldGate();
        configure(gate, Map.of());
        configure(gate, Map.of());
        refused(gate, Map.of("application.id", "orders"), "one hold gate for the applications shop-g2 and orders");
        says(() -> gate.getConsumer(new HashMap<>(Map.of("group.id", "orders"))), "applications shop-g2 and orders");
        passed("a second application is refused");

        says(() -> new HoldGate().configure(Map.of()), "found no application.id");
        says(() -> new FencedAfterAbort().getAdmin(new HashMap<>()), "expected configure(...) to be called first");
        passed("a program that has not configured its gate is told so");
    }

    private static void configure(final KafkaClientSupplier gate, final Map<String, Object> settings) {
        final Map<String, Object> config = new HashMap<>(Map.of("application.id", "shop-g2"));
        config.putAll(settings);
        ((Configurable) gate).configure(config);
    }

    private static void refused(
            final KafkaClientSupplier gate, final Map<String, Object> settings, final String said) {
        says(() -> configure(gate, settings), said);
    }

    private static void says(final Runnable action, final String said) {
        try {
            action.run();
        } catch (final IllegalStateException error) {
            if (error.getMessage().contains(said)) {
                return;
            }
            throw new AssertionError("expected an error that says: " + said, error);
        }
        throw new AssertionError("nothing was thrown; expected an error that says: " + said);
    }

    private static void passed(final String name) {
        System.out.println(name);
    }
}
