import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;

/**
 * An instance that writes by itself, as {@link PunctuatingMember} does, in a process that goes on after it has
 * ended. It prints {@code LEFT} and the threads of the application that are left then.
 */
public final class LingeringMember {
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(20);

    private LingeringMember() {
    }

    public static void main(final String[] arguments) throws InterruptedException {
        Member.run(arguments, PunctuatingMember::topology);
        // Threads that have been told to end need a moment.
        final long deadline = System.nanoTime() + LONGEST_WAIT.toNanos();
        while (!threadsOf(arguments[1]).isEmpty() && System.nanoTime() < deadline) {
            Thread.sleep(50);
        }
        System.out.println("LEFT " + threadsOf(arguments[1]));
    }

    private static List<String> threadsOf(final String application) {
        return Thread.getAllStackTraces().keySet().stream().map(Thread::getName)
            .filter(name -> name.contains(application)).sorted().collect(Collectors.toList());
    }
}
