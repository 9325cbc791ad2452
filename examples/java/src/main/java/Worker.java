import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.SafeEncoder;
import sun.misc.Signal;

/**
 * Sends the mail that is due: in batches, renewing its leases while it works, until it is told to stop.
 *
 * <p>It survives outages of its server: it waits and tries again. Its leases stay valid.
 */
public final class Worker {
    private static final String QUEUE = "mail";
    private static final int BATCH = 10;
    /** How late a signal may be noticed. */
    private static final int BLOCK_MS = 1_000;
    /** Well below the TTR of any job in the queue. */
    private static final int HEARTBEAT_MS = 500;
    /** For a reply: more than BLOCK_MS. */
    private static final int TIMEOUT_MS = 5_000;
    /** Between two tries. */
    private static final long PAUSE_MS = 50;
    private static final long LONGEST_PAUSE_MS = 2_000;
    /** How long a worker that stops tries to say what came of its jobs. */
    private static final long GRACE_NS = TimeUnit.SECONDS.toNanos(5);
    /** A reason has 512 bytes, a character up to four. */
    private static final int REASON_CHARS = 128;
    /** Errors that waiting doesn't mend. Others pass: LOADING, READONLY, UNBLOCKED, CLUSTERDOWN and so on. */
    private static final Set<String> MISTAKES = Set.of("ERR", "WRONGTYPE", "NOAUTH", "NOPERM", "WRONGPASS");

    private enum Command implements ProtocolCommand {
        POP,
        TOUCH,
        FINISH,
        RELEASE,
        BURY;

        @Override
        public byte[] getRaw() {
            return SafeEncoder.encode("DQ." + name());
        }
    }

    /** Another attempt would fail as well. */
    private static final class Hopeless extends Exception {
        Hopeless(String message) {
            super(message);
        }
    }

    /** The job was cancelled, or another worker has it. */
    private static final class LeaseLost extends Exception {}

    private static final class Job {
        final String id;
        final String body;
        final String lease;
        final long attempt;
        volatile boolean isMine = true;

        /** From a delivery: id, body, lease, attempt. */
        Job(List<?> delivery) {
            id = SafeEncoder.encode((byte[]) delivery.get(0));
            body = SafeEncoder.encode((byte[]) delivery.get(1));
            lease = delivery.get(2).toString();
            attempt = (Long) delivery.get(3);
        }

        void check() throws LeaseLost {
            if (!isMine) {
                throw new LeaseLost();
            }
        }
    }

    /** The reply to a command, null when the worker gave up, and how many tries it took. */
    private record Answer(Object reply, int tries) {}

    /** The work; here it is pretended. It may be done twice, so it has to be idempotent. */
    private static void mail(Job job) throws Exception {
        for (String address : job.body.split(" ")) {
            if (!address.contains("@")) {
                throw new Hopeless("not an address: " + address);
            }
            if (address.endsWith("@down.example")) {
                throw new IOException("down.example does not answer");
            }
            Thread.sleep(200);
            System.out.println("sent " + job.id + " to " + address);
            job.check();
        }
    }

    private final JedisPooled server;
    private final ScheduledExecutorService pulse = Executors.newSingleThreadScheduledExecutor();
    /** When it was told to stop; null before. */
    private volatile Long stoppingSince;

    private Worker(JedisPooled server) {
        this.server = server;
    }

    public static void main(String[] args) throws InterruptedException {
        String url = System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379");
        // A pool: the heartbeat doesn't wait for a connection that DQ.POP keeps busy.
        try (JedisPooled server = new JedisPooled(URI.create(url), TIMEOUT_MS)) {
            new Worker(server).run();
        }
    }

    private void run() throws InterruptedException {
        // Not a shutdown hook: after it the JVM ends with 143, however orderly the end was.
        Signal.handle(new Signal("TERM"), signal -> stop());
        Signal.handle(new Signal("INT"), signal -> stop());
        try {
            while (!isStopping()) {
                List<Job> jobs = pop();
                ScheduledFuture<?> heartbeat = pulse.scheduleWithFixedDelay(
                        () -> beat(jobs), HEARTBEAT_MS, HEARTBEAT_MS, TimeUnit.MILLISECONDS);
                for (Job job : jobs) {
                    if (isStopping()) {
                        settle(job, "given back", Command.RELEASE, "UNBEGUN");
                    } else {
                        work(job);
                    }
                }
                heartbeat.cancel(false);
            }
        } finally {
            pulse.shutdown();
            pulse.awaitTermination(TIMEOUT_MS, TimeUnit.MILLISECONDS);
        }
        System.out.println("stopped");
    }

    private synchronized void stop() {
        stoppingSince = isStopping() ? stoppingSince : System.nanoTime();
    }

    private boolean isStopping() {
        return stoppingSince != null;
    }

    private boolean isOutOfTime() {
        return isStopping() && System.nanoTime() - stoppingSince > GRACE_NS;
    }

    private List<Job> pop() {
        // A signal doesn't break it off: its reply may be on the way, with jobs. (sendBlockingCommand has no
        // timeout: it would wait for ever for a server that has vanished.)
        Answer popped = ask(
                this::isStopping, Command.POP, QUEUE, "COUNT", "" + BATCH, "BLOCK", "" + BLOCK_MS);
        List<Job> jobs = new ArrayList<>();
        if (popped.reply() instanceof List<?> deliveries) {
            for (Object delivery : deliveries) {
                jobs.add(new Job((List<?>) delivery));
            }
        }
        return jobs;
    }

    private void work(Job job) {
        try {
            job.check();
            mail(job);
        } catch (LeaseLost lost) {
            report(job, "lost");
            return;
        } catch (Hopeless hopeless) {
            String reason = reason(hopeless);
            settle(job, "buried, " + reason, Command.BURY, "REASON", reason);
            return;
        } catch (Exception passing) { // it comes back after its backoff
            String reason = reason(passing);
            settle(job, "failed, " + reason, Command.RELEASE, "REASON", reason);
            return;
        }
        settle(job, "finished", Command.FINISH);
    }

    private static String reason(Exception exception) {
        String message = String.valueOf(exception.getMessage());
        return message.substring(0, Math.min(message.length(), REASON_CHARS));
    }

    /** Reports what came of a job, with its lease. 0 means that it isn't ours any more. */
    private void settle(Job job, String outcome, Command command, String... options) {
        job.isMine = false;
        List<String> words = new ArrayList<>(List.of(QUEUE, job.id, job.lease));
        words.addAll(List.of(options));
        Answer answer = ask(this::isOutOfTime, command, words.toArray(String[]::new));
        if (answer.reply() == null) { // when its lease runs out, it comes back
            report(job, outcome + ", but the server can't be told");
        } else if ((Long) answer.reply() == 1) {
            report(job, outcome);
        } else { // a try whose reply was lost may have been accepted
            report(job, answer.tries() > 1 ? outcome + " before, or lost" : "lost");
        }
    }

    /** Sends a command until it is answered. */
    private Answer ask(BooleanSupplier givesUp, Command command, String... words) {
        long pause = PAUSE_MS;
        for (int tries = 1; ; tries++) {
            try {
                return new Answer(server.sendCommand(command, words), tries);
            } catch (JedisException error) {
                if (isMistake(error)) {
                    throw error;
                }
                System.err.println("DQ." + command + ": " + error.getMessage());
            }
            leave();
            if (givesUp.getAsBoolean()) {
                return new Answer(null, tries);
            }
            sleep(ThreadLocalRandom.current().nextLong(pause / 2, pause)); // not all workers at once
            pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
        }
    }

    private static boolean isMistake(JedisException error) {
        return error instanceof JedisDataException && MISTAKES.contains(error.getMessage().split(" ")[0]);
    }

    /** The address may lead to another server by now: leaves the one that is no primary any more. */
    private void leave() {
        server.getPool().clear();
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException nobodyDoes) {
            Thread.currentThread().interrupt();
        }
    }

    private static void report(Job job, String outcome) {
        System.out.println(job.id + ": " + outcome + ", attempt " + job.attempt);
    }

    /** Renews the leases of a batch, also of the jobs not yet begun. */
    private void beat(List<Job> jobs) {
        try {
            for (Job job : jobs) {
                if (job.isMine
                        && (Long) server.sendCommand(Command.TOUCH, QUEUE, job.id, job.lease) == 0) {
                    job.isMine = false;
                }
            }
        } catch (JedisException trouble) { // the next beat may get through
            System.err.println("heartbeat: " + trouble.getMessage());
            leave();
        }
    }
}
