// Sends the mail that is due: in batches, renewing its leases while it works, until it is told to stop.
//
// It survives outages of its server: it waits and tries again. Its leases stay valid.

import { setTimeout as sleep } from 'node:timers/promises';

import { createClient } from 'redis';

const QUEUE = 'mail';
const BATCH = 10;
const BLOCK_MS = 1_000; // how late a signal may be noticed
const HEARTBEAT_MS = 500; // well below the TTR of any job in the queue
const TIMEOUT_MS = 5_000; // for a reply: more than BLOCK_MS
const [PAUSE_MS, LONGEST_PAUSE_MS] = [50, 2_000]; // between two tries
const GRACE_MS = 5_000; // how long a worker that stops tries to say what came of its jobs
const REASON_CHARS = 128; // a reason has 512 bytes, a character up to four
// Errors that waiting doesn't mend. Others pass: LOADING, READONLY, UNBLOCKED, CLUSTERDOWN and so on.
const MISTAKES = new Set(['ERR', 'WRONGTYPE', 'NOAUTH', 'NOPERM', 'WRONGPASS']);

// A connection that is opened anew after each error: its address may lead to another server by then.
class Link {
  #client;

  async send(words) {
    const client = (this.#client ??= this.#connect());
    const timeout = new AbortController();
    try {
      return await Promise.race([
        client.then((connected) => connected.sendCommand(words.map(String))),
        sleep(TIMEOUT_MS, undefined, { signal: timeout.signal }).then(() => {
          throw new Error('no reply');
        }),
      ]);
    } catch (error) {
      if (this.#client === client) this.close();
      throw error;
    } finally {
      timeout.abort();
    }
  }

  close() {
    this.#client?.then((client) => client.destroy()).catch(() => {});
    this.#client = undefined;
  }

  async #connect() {
    const client = createClient({
      url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
      socket: { reconnectStrategy: false, connectTimeout: TIMEOUT_MS }, // `ask` tries again
    });
    client.on('error', () => {}); // whoever waits for a reply gets the error
    return client.connect();
  }
}

const server = new Link();
const blocking = new Link(); // DQ.POP would hold up whatever else goes over its connection

let stoppingSince;
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => {
    stoppingSince ??= Date.now();
  });
}
const isStopping = () => stoppingSince !== undefined;
const isOutOfTime = () => isStopping() && Date.now() > stoppingSince + GRACE_MS;

// Another attempt would fail as well.
class Hopeless extends Error {}

// The work; here it is pretended. It may be done twice, so it has to be idempotent. `signal` says that the
// job was cancelled or taken over.
async function mail(job, signal) {
  for (const address of job.body.split(' ')) {
    if (!address.includes('@')) throw new Hopeless(`not an address: ${address}`);
    if (address.endsWith('@down.example')) throw new Error('down.example does not answer');
    await sleep(200, undefined, { signal });
    console.log(`sent ${job.id} to ${address}`);
  }
}

// Sends a command until it is answered. The reply is null, too, when it gave up.
async function ask(link, words, giveUp) {
  let pause = PAUSE_MS;
  for (let tries = 1; ; tries += 1) {
    try {
      return { reply: await link.send(words), tries };
    } catch (error) {
      if (MISTAKES.has(error.message.split(' ')[0])) throw error;
      console.error(`${words[0]}: ${error.message}`);
    }
    if (giveUp()) return { reply: null, tries };
    await sleep(pause * (0.5 + Math.random() / 2)); // not all workers at once
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  }
}

async function pop() {
  // A signal doesn't break it off: its reply may be on the way, with jobs.
  const words = ['DQ.POP', QUEUE, 'COUNT', BATCH, 'BLOCK', BLOCK_MS];
  const { reply } = await ask(blocking, words, isStopping);
  return (reply ?? []).map(([id, body, lease, attempt]) => ({
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

// Reports what came of a job, with its lease. 0 means that it isn't ours any more.
async function settle(job, outcome, command, ...options) {
  job.settled = true;
  const words = [command, QUEUE, job.id, job.lease, ...options];
  const { reply, tries } = await ask(server, words, isOutOfTime);
  if (reply === null) {
    report(job, `${outcome}, but the server can't be told`); // when its lease runs out, it comes back
  } else if (reply === 1) {
    report(job, outcome);
  } else {
    // A try whose reply was lost may have been accepted.
    report(job, tries > 1 ? `${outcome} before, or lost` : 'lost');
  }
}

function report(job, outcome) {
  console.log(`${job.id}: ${outcome}, attempt ${job.attempt}`);
}

// Renews the leases of a batch, also of the jobs not yet begun, until it is over.
async function heartbeat(jobs, over) {
  while (!over.aborted) {
    await sleep(HEARTBEAT_MS, undefined, { signal: over }).catch(() => {});
    if (!over.aborted) await beat(jobs);
  }
}

async function beat(jobs) {
  const touching = jobs
    .filter((job) => !job.settled)
    .map(async (job) => {
      const held = await server.send(['DQ.TOUCH', QUEUE, job.id, job.lease]);
      if (!held) job.lost.abort();
    });
  const results = await Promise.allSettled(touching);
  const failed = results.find(({ status }) => status === 'rejected');
  // The next beat may get through.
  if (failed) console.error('heartbeat:', failed.reason.message);
}

while (!isStopping()) {
  const jobs = await pop();
  const over = new AbortController();
  const beating = heartbeat(jobs, over.signal);
  for (const job of jobs) {
    if (isStopping()) {
      await settle(job, 'given back', 'DQ.RELEASE', 'UNBEGUN');
    } else {
      await work(job);
    }
  }
  over.abort();
  await beating;
}
server.close();
blocking.close();
console.log('stopped');
