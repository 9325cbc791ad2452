<?php

// Queues some mail. Safe to run again: what is queued already stays as it is.

declare(strict_types=1);

const QUEUE = 'mail';

$url = parse_url(getenv('REDIS_URL') ?: 'redis://127.0.0.1:6379');
$server = new Redis();
$server->connect($url['host'], $url['port'] ?? 6379);

// NX: an id names a job once, so adding it again, say after a timeout, doesn't mail twice.
$add = function (string $id, string $body, string|int ...$options) use ($server): void {
    $added = $server->rawCommand('DQ.ADD', QUEUE, $id, $body, ...[...$options, 'NX']);
    echo $added ? 'added' : 'queued already', ": $id\n";
};

// In half a second. A worker that says nothing for ten seconds is taken for dead.
$add('welcome:ann', 'ann@example.com', 'DELAY', 500, 'TTR', 10_000);
$add('welcome:ann', 'ann@example.com', 'DELAY', 500, 'TTR', 10_000);
// Now.
$add('newsletter:7', 'ann@example.com bob@example.com eve@example.com', 'TTR', 10_000);
// This server won't answer: tried three times, 200 and then 400 ms apart, then dead.
$add('welcome:dan', 'dan@down.example', 'ATTEMPTS', 3, 'BACKOFF', 200, 60_000);
// Not a mail address: its worker buries it.
$add('welcome:nobody', 'nobody');
// Bob pays at once, so he needs no reminder.
$add('reminder:bob', 'bob@example.com', 'DELAY', 86_400_000);
if ($server->rawCommand('DQ.DEL', QUEUE, 'reminder:bob') === 1) {
    echo "cancelled: reminder:bob\n";
}
