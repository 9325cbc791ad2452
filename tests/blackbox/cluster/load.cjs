// Adds jobs to queues of a cluster and takes them, by node-redis. Each line that it prints is something that it was
// told. It stops adding when its input ends, and goes on taking until it is killed.
//
//     NODE_PATH=.../node_modules node load.cjs PORT QUEUE...
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

const { createCluster } = require('redis');

const [port, ...queues] = process.argv.slice(2);
const BLOCK_MS = 300;
const PACE_MS = 5;
const DELAYS_MS = [0, 0, 1, 50, 200, 400];
let isAdding = true;
process.stdin.on('end', () => (isAdding = false)).resume();

const tell = (...words) => console.log(JSON.stringify(words));

async function connected() {
  const cluster = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
  cluster.on('error', () => {}); // whoever waits for a reply gets the error
  return cluster.connect();
}

// The reply, or undefined when there was an error.
async function ask(cluster, queue, ...words) {
  try {
    const [name, ...rest] = words;
    return await cluster.sendCommand(queue, false, [name, queue, ...rest].map(String));
  } catch (error) {
    tell('error', words[0], error.message);
    await sleep(20);
    return undefined;
  }
}

async function produce(cluster) {
  for (let number = 0; isAdding; number += 1) {
    const queue = queues[number % queues.length];
    const id = `${queue}/${number}`;
    const due = Date.now() + DELAYS_MS[Math.floor(Math.random() * DELAYS_MS.length)];
    const added = await ask(cluster, queue, 'DQ.ADD', id, 'x'.repeat(50), 'AT', due);
    if (added === id) tell('added', id, due);
    else tell('unsure', id);
    await sleep(PACE_MS);
  }
}

// A POP that waits would hold up what else goes over its connection: each worker has its own.
async function work(queue, shared) {
  const own = await connected();
  for (;;) {
    const popped = await ask(own, queue, 'DQ.POP', 'COUNT', 5, 'BLOCK', BLOCK_MS);
    for (const [id, , lease, attempt] of popped ?? []) {
      tell('delivered', id, lease, attempt, Date.now());
      let finished;
      while (finished === undefined) finished = await ask(shared, queue, 'DQ.FINISH', id, lease);
      tell('finished', id, finished);
    }
  }
}

connected().then((shared) => Promise.all([produce(shared), ...queues.map((queue) => work(queue, shared))]));
