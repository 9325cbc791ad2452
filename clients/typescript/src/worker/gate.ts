/** Waiting inside one program. */

/** Open or closed. What waits goes on when it opens. */
export class Gate {
  readonly #waiting = new Set<() => void>();
  #isOpen: boolean;

  constructor(isOpen = false) {
    this.#isOpen = isOpen;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  open(): void {
    this.#isOpen = true;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const goOn of waiting) goOn();
  }

  close(): void {
    this.#isOpen = false;
  }

  /** Waits until it opens, `ms` milliseconds at most. */
  wait(ms = Number.POSITIVE_INFINITY): Promise<void> {
    return firstOf([this], ms);
  }

  /** @internal */
  listen(goOn: () => void): void {
    this.#waiting.add(goOn);
  }

  /** @internal */
  forget(goOn: () => void): void {
    this.#waiting.delete(goOn);
  }
}

/** setTimeout takes no longer time: it would not wait at all. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Waits until one of them opens, `ms` milliseconds at most, and leaves no timer behind. */
export function firstOf(gates: readonly Gate[], ms = Number.POSITIVE_INFINITY): Promise<void> {
  if (ms <= 0 || gates.some(({ isOpen }) => isOpen)) return Promise.resolve();
  return new Promise((goOn) => {
    let timer: NodeJS.Timeout | undefined;
    const end = () => {
      clearTimeout(timer);
      for (const gate of gates) gate.forget(end);
      goOn();
    };
    const wait = (left: number) => {
      const part = Math.min(left, LONGEST_TIMER_MS);
      timer = setTimeout(() => (left > part ? wait(left - part) : end()), part);
    };
    if (ms !== Number.POSITIVE_INFINITY) wait(ms);
    for (const gate of gates) gate.listen(end);
  });
}

export const FIRST_MS = 50;
const LONGEST_MS = 2_000;

/**
 * How long to wait between two tries, in milliseconds: twice as long each time, up to a limit, less
 * up to a half at random, so that a thousand workers don't come back in the same moment.
 */
export function* pauses(): Generator<number, never> {
  for (let pause = FIRST_MS; ; pause = Math.min(2 * pause, LONGEST_MS)) {
    yield pause * (1 - Math.random() / 2);
  }
}

/** By the machine's monotonic clock, in milliseconds. */
export const now = (): number => performance.now();
