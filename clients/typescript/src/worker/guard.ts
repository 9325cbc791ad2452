/** What handlers do to the process: errors that they let escape, and handlers that never end. */

import { current } from "./hands.ts";
import type { Net } from "./net.ts";
import { named } from "./renewing.ts";
import type { Hand } from "./running.ts";

/**
 * Until the function that it returns is called, an error that a handler throws in a timer or an
 * event is a failure of its job. Whose it is can be told when only one runs, and from the second such
 * error on. Errors that come while no handler runs end the process, as without a worker, unless the
 * program listens to them by itself.
 */
export function guard(net: Net, running: () => readonly Hand[]): () => void {
  const uncaught = (error: unknown) => {
    const inHand = running();
    const hand = current.hand.getStore() ?? (inHand.length === 1 ? inHand[0] : undefined);
    current.isKept = true;
    if (hand !== undefined) {
      net.traced(`the handler of ${named([hand])} threw outside of its promise`, error);
      hand.fail(error);
    } else if (inHand.length > 0) {
      net.traced(`a handler threw outside of its promise, one of ${named(inHand)}`, error);
    } else if (process.listenerCount("uncaughtException") === 1) {
      console.error(error);
      process.exit(1);
    }
  };
  const unhandled = (error: unknown) => {
    if (process.listenerCount("unhandledRejection") > 1) return;
    // It may be a job's that has ended: Node can't say whose it is.
    net.traced("a promise was rejected, and no code handles that", error);
  };
  process.on("uncaughtException", uncaught);
  process.on("unhandledRejection", unhandled);
  return () => {
    process.off("uncaughtException", uncaught);
    process.off("unhandledRejection", unhandled);
  };
}

/** For the program's own last steps, when handlers go on after the end of the worker. */
const LEAVE_MS = 1_000;

/** Ends the process even if handlers go on. */
export function leave(left: readonly Hand[], net: Net): void {
  const end = () => {
    net.warn(`the process ends, though handlers still run: ${named(left)}`);
    process.exit();
  };
  setTimeout(end, LEAVE_MS).unref();
}
