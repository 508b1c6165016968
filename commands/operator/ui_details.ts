/** Answers the page's requests for details: pages of dead letters, a message body, the subscribers of a topic. */
import { HttpError } from "../../src/base/http/http_error.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { PageAnswer } from "../product.ts";

export interface UiDetailsOptions {
  readonly answers: Readonly<Record<string, PageAnswer>>;
  readonly zk: () => ZooKeeper | null;
  readonly clock: Clock;
}

const runningMax = 8;

export class UiDetails {
  readonly #options: UiDetailsOptions;
  #running = 0;

  constructor(options: UiDetailsOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the answer to a request; returns null for an unknown path. Rejects with an HttpError, or with an
   * error of a message store or server.
   */
  answer(path: string, query: URLSearchParams, signal: AbortSignal): Promise<unknown> | null {
    const { answers, zk, clock } = this.#options;
    const answer = Object.hasOwn(answers, path) ? answers[path] : undefined;
    if (answer === undefined) return null;
    return this.#limited(() => answer(query, { zk: () => demandSession(zk()), clock, signal }));
  }

  async #limited<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= runningMax) throw new HttpError(503, "Too many requests at the same time: try again\n");
    this.#running++;
    try {
      return await work();
    } finally {
      this.#running--;
    }
  }
}

function demandSession(session: ZooKeeper | null): ZooKeeper {
  if (session === null) throw new HttpError(503, "No coordination server responds\n");
  return session;
}
