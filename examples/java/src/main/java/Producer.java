import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.util.SafeEncoder;

/** Queues some mail. Safe to run again: what is queued already stays as it is. */
public final class Producer {
    private enum Command implements ProtocolCommand {
        ADD,
        DEL;

        @Override
        public byte[] getRaw() {
            return SafeEncoder.encode("DQ." + name());
        }
    }

    private static final String QUEUE = "mail";

    private final JedisPooled server;

    private Producer(JedisPooled server) {
        this.server = server;
    }

    public static void main(String[] args) {
        String url = System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379");
        try (JedisPooled server = new JedisPooled(url)) {
            new Producer(server).run();
        }
    }

    private void run() {
        // In half a second. A worker that says nothing for ten seconds is taken for dead.
        add("welcome:ann", "ann@example.com", "DELAY", 500, "TTR", 10_000);
        add("welcome:ann", "ann@example.com", "DELAY", 500, "TTR", 10_000);
        // Now.
        add("newsletter:7", "ann@example.com bob@example.com eve@example.com", "TTR", 10_000);
        // This server won't answer: tried three times, 200 and then 400 ms apart, then dead.
        add("welcome:dan", "dan@down.example", "ATTEMPTS", 3, "BACKOFF", 200, 60_000);
        // Not a mail address: its worker buries it.
        add("welcome:nobody", "nobody");
        // Bob pays at once, so he needs no reminder.
        add("reminder:bob", "bob@example.com", "DELAY", 86_400_000);
        cancel("reminder:bob");
    }

    /** NX: an id names a job once, so adding it again, say after a timeout, doesn't mail twice. */
    private void add(String id, String body, Object... options) {
        List<String> words = new ArrayList<>(List.of(QUEUE, id, body));
        for (Object option : options) {
            words.add(option.toString());
        }
        words.add("NX");
        Object added = server.sendCommand(Command.ADD, words.toArray(String[]::new));
        System.out.println((added != null ? "added: " : "queued already: ") + id);
    }

    private void cancel(String id) {
        if ((Long) server.sendCommand(Command.DEL, QUEUE, id) == 1) {
            System.out.println("cancelled: " + id);
        }
    }
}
