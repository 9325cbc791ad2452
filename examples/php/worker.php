<?php

// Sends the mail that is due: in batches, renewing its leases while it works, until it is told to
// stop.
//
// It survives outages of its server: it waits and tries again. Its leases stay valid. PHP has no
// threads, so the work itself renews the leases, by `check` between its steps: a step has to be
// shorter than the TTR.

declare(strict_types=1);

const QUEUE = 'mail';
const BATCH = 10;
const BLOCK_MS = 1_000; // how late a signal may be noticed
const HEARTBEAT_S = 0.5; // well below the TTR of any job in the queue
const TIMEOUT_S = 5.0; // for a reply: more than BLOCK_MS
const PAUSE_S = 0.05; // between two tries, doubled each time up to
const LONGEST_PAUSE_S = 2.0;
const GRACE_S = 5.0; // how long a worker that stops tries to say what came of its jobs
const REASON_BYTES = 512;
// Errors that waiting doesn't mend. Others pass: LOADING, READONLY, UNBLOCKED, CLUSTERDOWN and so
// on.
const MISTAKES = ['ERR', 'WRONGTYPE', 'NOAUTH', 'NOPERM', 'WRONGPASS'];

/** Another attempt would fail as well. */
final class Hopeless extends Exception
{
}

/** The job was cancelled, or another worker has it. */
final class LeaseLost extends Exception
{
}

final class Job
{
    public bool $lost = false;
    public bool $settled = false;

    public function __construct(
        public readonly string $id,
        public readonly string $body,
        public readonly int $lease,
        public readonly int $attempt,
    ) {
    }
}

/** A connection that is opened anew after each error: its address may lead to another server. */
final class Link
{
    private ?Redis $client = null;

    public function send(string|int ...$words): mixed
    {
        try {
            $this->client ??= $this->connect();
            $this->client->clearLastError();
            $reply = $this->client->rawCommand(...$words);
            $error = $this->client->getLastError();
        } catch (RedisException $broken) {
            $error = $broken->getMessage();
        }
        if ($error === null) {
            return $reply;
        }
        $this->client = null;
        throw new RedisException($error);
    }

    private function connect(): Redis
    {
        $url = parse_url(getenv('REDIS_URL') ?: 'redis://127.0.0.1:6379');
        $client = new Redis();
        $client->connect($url['host'], $url['port'] ?? 6379, TIMEOUT_S, null, 0, TIMEOUT_S);
        $client->setOption(Redis::OPT_MAX_RETRIES, 0); // `ask` tries again
        return $client;
    }
}

final class Worker
{
    private Link $server;
    /** @var Job[] those in hand */
    private array $jobs = [];
    private float $beatAt = 0.0;
    private ?float $stoppingSince = null;

    public function __construct()
    {
        $this->server = new Link();
    }

    public function run(): void
    {
        pcntl_async_signals(true);
        foreach ([SIGTERM, SIGINT] as $signal) {
            pcntl_signal($signal, function (): void {
                $this->stoppingSince ??= now();
            });
        }
        while (!$this->isStopping()) {
            $this->jobs = $this->pop();
            $this->beatAt = now() + HEARTBEAT_S;
            foreach ($this->jobs as $job) {
                if ($this->isStopping()) {
                    $this->settle($job, 'given back', 'DQ.RELEASE', 'UNBEGUN');
                } else {
                    $this->work($job);
                }
            }
        }
        say('stopped');
    }

    /** The work; here it is pretended. It may be done twice, so it has to be idempotent. */
    private function mail(Job $job): void
    {
        foreach (explode(' ', $job->body) as $address) {
            if (!str_contains($address, '@')) {
                throw new Hopeless("not an address: $address");
            }
            if (str_ends_with($address, '@down.example')) {
                throw new RuntimeException('down.example does not answer');
            }
            pause(0.2);
            say("sent $job->id to $address");
            $this->check($job);
        }
    }

    private function isStopping(): bool
    {
        return $this->stoppingSince !== null;
    }

    private function isOutOfTime(): bool
    {
        return $this->isStopping() && now() > $this->stoppingSince + GRACE_S;
    }

    /**
     * A signal doesn't break it off: its reply may be on the way, with jobs.
     *
     * @return Job[]
     */
    private function pop(): array
    {
        $words = ['DQ.POP', QUEUE, 'COUNT', BATCH, 'BLOCK', BLOCK_MS];
        [$popped] = $this->ask($words, $this->isStopping(...));
        return array_map(fn (array $delivery) => new Job(...$delivery), $popped ?: []);
    }

    private function work(Job $job): void
    {
        try {
            $this->check($job);
            $this->mail($job);
        } catch (LeaseLost) {
            $this->report($job, 'lost');
            return;
        } catch (Hopeless $error) {
            $reason = substr($error->getMessage(), 0, REASON_BYTES);
            $this->settle($job, "buried, $reason", 'DQ.BURY', 'REASON', $reason);
            return;
        } catch (Exception $error) { // it comes back after its backoff
            $reason = substr($error->getMessage(), 0, REASON_BYTES);
            $this->settle($job, "failed, $reason", 'DQ.RELEASE', 'REASON', $reason);
            return;
        }
        $this->settle($job, 'finished', 'DQ.FINISH');
    }

    /** Renews the leases when it is time to, also of the jobs not yet begun. */
    private function check(Job $job): void
    {
        if (now() >= $this->beatAt) {
            $this->beat();
            $this->beatAt = now() + HEARTBEAT_S;
        }
        if ($job->lost) {
            throw new LeaseLost();
        }
    }

    private function beat(): void
    {
        try {
            foreach ($this->jobs as $job) {
                if (!$job->settled && !$job->lost) {
                    $job->lost = $this->server->send('DQ.TOUCH', QUEUE, $job->id, $job->lease) === 0;
                }
            }
        } catch (RedisException $error) { // the next beat may get through
            say("heartbeat: {$error->getMessage()}");
        }
    }

    /** Reports what came of a job, with its lease. 0 means that it isn't ours any more. */
    private function settle(Job $job, string $outcome, string $command, string ...$options): void
    {
        $job->settled = true;
        $words = [$command, QUEUE, $job->id, $job->lease, ...$options];
        [$accepted, $tries] = $this->ask($words, $this->isOutOfTime(...));
        $this->report($job, match (true) {
            // When its lease runs out, it comes back.
            $accepted === null => "$outcome, but the server can't be told",
            $accepted === 1 => $outcome,
            // A try whose reply was lost may have been accepted.
            $tries > 1 => "$outcome before, or lost",
            default => 'lost',
        });
    }

    private function report(Job $job, string $outcome): void
    {
        say("$job->id: $outcome, attempt $job->attempt");
    }

    /**
     * Sends a command until it is answered.
     *
     * @param array<string|int> $words
     * @param callable(): bool $givesUp
     * @return array{mixed, int} the reply, null when it gave up, and how many tries it took
     */
    private function ask(array $words, callable $givesUp): array
    {
        $pause = PAUSE_S;
        for ($tries = 1; ; $tries++) {
            try {
                return [$this->server->send(...$words), $tries];
            } catch (RedisException $error) {
                if (in_array(explode(' ', $error->getMessage())[0], MISTAKES, true)) {
                    throw $error;
                }
                say("$words[0]: {$error->getMessage()}");
            }
            if ($givesUp()) {
                return [null, $tries];
            }
            pause($pause * mt_rand(500, 1_000) / 1_000); // not all workers at once
            $pause = min(2 * $pause, LONGEST_PAUSE_S);
        }
    }
}

function say(string $line): void
{
    fwrite(STDOUT, "$line\n");
}

function now(): float
{
    return hrtime(true) / 1e9;
}

/** Sleeps; a signal doesn't cut it short. */
function pause(float $seconds): void
{
    $until = now() + $seconds;
    while (($left = $until - now()) > 0) {
        usleep((int) ceil($left * 1e6));
    }
}

(new Worker())->run();
