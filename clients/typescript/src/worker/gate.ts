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

  wait(): Promise<void> {
    return this.#isOpen ? Promise.resolve() : new Promise((goOn) => this.#waiting.add(goOn));
  }

  /** Waits until it opens, `ms` milliseconds at most. */
  waitFor(ms: number): Promise<void> {
    if (this.#isOpen) return Promise.resolve();
    return new Promise((goOn) => {
      const opened = () => {
        clearTimeout(timer);
        goOn();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(opened);
        goOn();
      }, ms);
      this.#waiting.add(opened);
    });
  }
}

const FIRST_MS = 50;
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
