import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiFunction;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;

/**
 * What the small instances of tests have in common. Each prints every state that it enters; SIGTERM closes it cleanly.
 *
 * <pre>java CLASS SERVERS APPLICATION_ID INPUT OUTPUT STATE_DIRECTORY [name=value]...</pre>
 *
 * @param input the topic that it reads
 * @param output the topic that it writes
 */
record Member(String input, String output) {
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
        final var streams = new KafkaStreams(topology.apply(new Member(arguments[2], arguments[3]), settings), settings);
        final var ended = new CountDownLatch(1);
        streams.setStateListener((state, before) -> {
            System.out.println(state);
            if (state == KafkaStreams.State.ERROR || state == KafkaStreams.State.NOT_RUNNING) {
                ended.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        // Who closes it after an error is a daemon: the JVM could end before the last state has been told.
        ended.await();
    }
}
