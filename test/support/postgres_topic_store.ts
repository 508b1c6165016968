/** A server's topics in a shared database, without a thread and without the network: requests in, responses out. */
import { type DatabaseAddress, parseDatabaseUrl } from "../../src/base/postgres/database_address.ts";
import { DatabaseLane } from "../../src/base/postgres/database_lane.ts";
import { PostgresTopicRows } from "../../src/pubsub/store/postgres/postgres_topic_rows.ts";
import { RefusedPuts } from "../../src/pubsub/store/limits/refused_puts.ts";
import { StoreEngine } from "../../src/pubsub/store/engine/store_engine.ts";
import type { StoreOperation, StoreResponse } from "../../src/pubsub/store/operations/store_operations.ts";
import { runSteps } from "../../src/base/support/steps.ts";
import type { FailedTopicCommit } from "../../src/pubsub/store/rows/topic_rows.ts";
import { defaultTopicStoreOptions } from "../../src/pubsub/store/limits/topic_store_limits.ts";
import { TopicTransfer } from "../../src/pubsub/store/transfer/topic_transfer.ts";
import { systemClock } from "../../src/base/support/clock.ts";

export const databaseAddress = (url: string, schema: string): DatabaseAddress =>
  parseDatabaseUrl(`${url}?schema=${schema}`, { mayHavePassword: true, env: {} });

export class PostgresTopicStore implements AsyncDisposable {
  readonly #lane: DatabaseLane;
  readonly engine: StoreEngine;
  readonly transfer: TopicTransfer;
  readonly rows: PostgresTopicRows;
  readonly lost: string[] = [];
  readonly losses: string[] = [];
  #responses: StoreResponse[] = [];
  #ticket = 1;

  constructor(
    address: DatabaseAddress,
    server: string,
    options: { readonly refusedMs?: number; readonly stopsOnLoss?: boolean } = {},
  ) {
    const clock = systemClock();
    this.#lane = new DatabaseLane({ address, clock, name: server });
    this.rows = new PostgresTopicRows({
      ...{ lane: this.#lane, clock, server },
      onLoss: (sentence) => this.losses.push(sentence),
      ...options,
    });
    this.engine = new StoreEngine(this.rows, defaultTopicStoreOptions, {
      onResponse: (response) => this.#responses.push(response),
      wallClockMs: () => Date.now(),
      refusedPuts: new RefusedPuts(),
      onTopicLost: (topic, { outcome }: FailedTopicCommit) => this.lost.push(`${topic} ${outcome}`),
    });
    this.transfer = new TopicTransfer(this.rows, this.engine);
  }

  create(name: string): Promise<void> {
    return runSteps(this.transfer.create(name, { incarnation: `of ${name}`, baseOffset: 0, epoch: 1 }));
  }

  open(name: string, epoch: number): Promise<void> {
    return runSteps(this.transfer.activate(name, epoch, "copy", `of ${name}`));
  }

  /** One batch; the responses come in the order of the operations. */
  async execute(...operations: readonly Readonly<Record<string, unknown>>[]): Promise<StoreResponse[]> {
    const common = { topic: "news", epoch: 1, client: "bob", session: null, op: null, registration: 0 };
    const puts = { firstUnacked: 0, after: null, msgId: null, fromSession: null };
    const gets = { max: 100, maxBytes: 0, wait: false, peek: false, last: -1 };
    const whole = operations.map((operation) =>
      ({ ticket: this.#ticket++, ...common, ...puts, ...gets, ...operation }) as unknown as StoreOperation & {
        ticket: number;
      }
    );
    this.#responses = [];
    await runSteps(this.engine.execute(whole));
    return whole.flatMap(({ ticket }) => this.#responses.filter((response) => response.ticket === ticket));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lane.close();
  }
}
