import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.SafeEncoder;
import sun.misc.Signal;

/** Mails what is due: in batches, keeping its leases while it works, until it is told to stop. */
public final class Worker {
    private static final String QUEUE = "mail";
    private static final int BATCH = 10;
    /** How late a signal may be noticed. */
    private static final int BLOCK_MS = 1_000;
    /** Well below the TTR of any job in the queue. */
    private static final int HEARTBEAT_MS = 500;
    /** A reason has 512 bytes, a character up to four. */
    private static final int REASON_CHARS = 128;

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

    /** The work; here it is pretended. */
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
    private volatile boolean stopping;

    private Worker(JedisPooled server) {
        this.server = server;
    }

    public static void main(String[] args) {
        String url = System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379");
        // A pool: the heartbeat doesn't wait for a connection that DQ.POP keeps busy.
        try (JedisPooled server = new JedisPooled(url)) {
            new Worker(server).run();
        }
    }

    private void run() {
        // Not a shutdown hook: after it the JVM ends with 143, however orderly the end was.
        Signal.handle(new Signal("TERM"), signal -> stopping = true);
        Signal.handle(new Signal("INT"), signal -> stopping = true);
        try {
            while (!stopping) {
                List<Job> jobs = pop();
                ScheduledFuture<?> heartbeat = pulse.scheduleWithFixedDelay(
                        () -> beat(jobs), HEARTBEAT_MS, HEARTBEAT_MS, TimeUnit.MILLISECONDS);
                for (Job job : jobs) {
                    if (stopping) {
                        settle(job, "given back", Command.RELEASE, "UNBEGUN");
                    } else {
                        work(job);
                    }
                }
                heartbeat.cancel(false);
            }
        } finally {
            pulse.shutdown();
        }
        System.out.println("stopped");
    }

    private List<Job> pop() {
        // Not broken off by a signal: its reply may be under way, with jobs.
        Object popped = server.sendBlockingCommand(
                Command.POP, QUEUE, "COUNT", "" + BATCH, "BLOCK", "" + BLOCK_MS);
        List<Job> jobs = new ArrayList<>();
        if (popped instanceof List<?> deliveries) {
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

    /** Tells the queue what came of a job, by the lease: 0 says that it isn't ours any more. */
    private void settle(Job job, String outcome, Command command, String... options) {
        job.isMine = false;
        List<String> words = new ArrayList<>(List.of(QUEUE, job.id, job.lease));
        words.addAll(List.of(options));
        boolean accepted = (Long) server.sendCommand(command, words.toArray(String[]::new)) == 1;
        report(job, accepted ? outcome : "lost");
    }

    private static void report(Job job, String outcome) {
        System.out.println(job.id + ": " + outcome + ", attempt " + job.attempt);
    }

    /** Keeps the leases of a batch, also of the jobs not yet begun. */
    private void beat(List<Job> jobs) {
        for (Job job : jobs) {
            try {
                if (job.isMine
                        && (Long) server.sendCommand(Command.TOUCH, QUEUE, job.id, job.lease) == 0) {
                    job.isMine = false;
                }
            } catch (JedisException trouble) { // the next beat may get through
                System.err.println("heartbeat: " + trouble.getMessage());
            }
        }
    }
}
