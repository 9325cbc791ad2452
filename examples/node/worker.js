// Mails what is due: in batches, keeping its leases while it works, until it is told to stop.

import { setTimeout as sleep } from 'node:timers/promises';

import { createClient } from 'redis';

const QUEUE = 'mail';
const BATCH = 10;
const BLOCK_MS = 1_000; // how late a signal may be noticed
const HEARTBEAT_MS = 500; // well below the TTR of any job in the queue
const REASON_CHARS = 128; // a reason has 512 bytes, a character up to four

const server = createClient({ url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' });
const blocking = server.duplicate(); // DQ.POP would hold up whatever else goes over its connection
for (const client of [server, blocking]) {
  client.on('error', (error) => console.error('redis:', error.message));
}

let stopping = false;
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => {
    stopping = true;
  });
}

// Another attempt would fail as well.
class Hopeless extends Error {}

// The work; here it is pretended. `signal` tells that the job was cancelled or taken over.
async function mail(job, signal) {
  for (const address of job.body.split(' ')) {
    if (!address.includes('@')) throw new Hopeless(`not an address: ${address}`);
    if (address.endsWith('@down.example')) throw new Error('down.example does not answer');
    await sleep(200, undefined, { signal });
    console.log(`sent ${job.id} to ${address}`);
  }
}

async function pop() {
  // Not broken off by a signal: its reply may be under way, with jobs.
  const command = ['DQ.POP', QUEUE, 'COUNT', BATCH, 'BLOCK', BLOCK_MS];
  const popped = await blocking.sendCommand(command.map(String));
  return (popped ?? []).map(([id, body, lease, attempt]) => ({
    id,
    body,
    lease,
    attempt,
    settled: false,
    lost: new AbortController(),
  }));
}

async function work(job) {
  try {
    job.lost.signal.throwIfAborted();
    await mail(job, job.lost.signal);
  } catch (error) {
    const reason = error.message.slice(0, REASON_CHARS);
    if (job.lost.signal.aborted) {
      report(job, 'lost');
    } else if (error instanceof Hopeless) {
      await settle(job, `buried, ${reason}`, 'DQ.BURY', 'REASON', reason);
    } else {
      // It comes back after its backoff.
      await settle(job, `failed, ${reason}`, 'DQ.RELEASE', 'REASON', reason);
    }
    return;
  }
  await settle(job, 'finished', 'DQ.FINISH');
}

// Tells the queue what came of a job, by the lease: 0 says that it isn't ours any more.
async function settle(job, outcome, command, ...options) {
  job.settled = true;
  const words = [command, QUEUE, job.id, String(job.lease), ...options];
  const accepted = await server.sendCommand(words);
  report(job, accepted ? outcome : 'lost');
}

function report(job, outcome) {
  console.log(`${job.id}: ${outcome}, attempt ${job.attempt}`);
}

// Keeps the leases of a batch, also of the jobs not yet begun.
async function beat(jobs) {
  const touching = jobs
    .filter((job) => !job.settled)
    .map(async (job) => {
      const held = await server.sendCommand(['DQ.TOUCH', QUEUE, job.id, String(job.lease)]);
      if (!held) job.lost.abort();
    });
  for (const { status, reason } of await Promise.allSettled(touching)) {
    // The next beat may get through.
    if (status === 'rejected') console.error('heartbeat:', reason.message);
  }
}

await Promise.all([server.connect(), blocking.connect()]);
while (!stopping) {
  const jobs = await pop();
  const heartbeat = setInterval(beat, HEARTBEAT_MS, jobs);
  for (const job of jobs) {
    if (stopping) {
      await settle(job, 'given back', 'DQ.RELEASE', 'UNBEGUN');
    } else {
      await work(job);
    }
  }
  clearInterval(heartbeat);
}
await Promise.all([server.close(), blocking.close()]);
console.log('stopped');
