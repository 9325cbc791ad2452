// Queues some mail. Safe to run again: what is queued already stays as it is.

import { createClient } from 'redis';

const QUEUE = 'mail';

const server = createClient({ url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' });
server.on('error', (error) => console.error('redis:', error.message));
await server.connect();

// NX: an id names a job once, so adding it again, say after a timeout, doesn't mail twice.
async function add(id, body, ...options) {
  const added = await server.sendCommand(['DQ.ADD', QUEUE, id, body, ...options.map(String), 'NX']);
  console.log(added ? 'added:' : 'queued already:', id);
}

// In half a second. A worker that says nothing for ten seconds is taken for dead.
await add('welcome:ann', 'ann@example.com', 'DELAY', 500, 'TTR', 10_000);
await add('welcome:ann', 'ann@example.com', 'DELAY', 500, 'TTR', 10_000);
// Now.
await add('newsletter:7', 'ann@example.com bob@example.com eve@example.com', 'TTR', 10_000);
// This server won't answer: tried three times, 200 and then 400 ms apart, then dead.
await add('welcome:dan', 'dan@down.example', 'ATTEMPTS', 3, 'BACKOFF', 200, 60_000);
// Not a mail address: its worker buries it.
await add('welcome:nobody', 'nobody');
// Bob pays at once, so he needs no reminder.
await add('reminder:bob', 'bob@example.com', 'DELAY', 86_400_000);
if (await server.sendCommand(['DQ.DEL', QUEUE, 'reminder:bob'])) {
  console.log('cancelled: reminder:bob');
}

await server.close();
