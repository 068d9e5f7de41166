import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiFunction;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;

/**
 * What the small instances of tests have in common. Each prints every state that it enters. SIGTERM closes it
 * cleanly.
 *
 * <pre>java CLASS SERVERS APPLICATION_ID INPUT OUTPUT STATE_DIRECTORY [name=value]...</pre>
 *
 * @param input the topic that it reads
 * @param output the topic that it writes
 */
record Member(String input, String output) {
    /**
     * Runs an instance until it has ended.
     *
     * @param arguments those of the command line; the settings at their end are those of Kafka Streams
     * @param topology makes the topology, and removes the settings that are its own
     */
    static void run(final String[] arguments, final BiFunction<Member, Properties, Topology> topology)
        throws InterruptedException {
        final var settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", arguments[1]);
        settings.put("state.dir", Path.of(arguments[4]).toString());
        for (int i = 5; i < arguments.length; i++) {
            final String[] setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        final var member = new Member(arguments[2], arguments[3]);
        runUntilEnd(new KafkaStreams(topology.apply(member, settings), settings));
    }

    /** Runs an instance until it has ended, by an error or by SIGTERM. */
    static void runUntilEnd(final KafkaStreams streams) throws InterruptedException {
        final var ended = new CountDownLatch(1);
        streams.setStateListener((state, before) -> {
            System.out.println(state);
            if (state == KafkaStreams.State.ERROR || state == KafkaStreams.State.NOT_RUNNING) {
                ended.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        // After an error, a daemon thread closes it. Without this wait, the JVM could end before the last state is
        // printed.
        ended.await();
    }
}
