/** The database of a round: killed and started again, cut off in the middle of statements, failed over to a synchronous standby. */
import { parseDatabaseUrl } from "../../../src/postgres/database_address.ts";
import { readOnlyRules } from "../../../src/retry/queue/direct_store.ts";
import { PostgresRetryStore } from "../../../src/retry/queue/postgres_retry_store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { sleep } from "../../../src/support/deadline.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { type StatementCut, StatementCutter } from "../../support/statement_cutter.ts";

export interface DatabasePlan {
  /** Restarts, lost connections, and statements that are cut off. */
  readonly disturbances: number;
  /** The primary is killed for good, and its synchronous standby is promoted. */
  readonly failsOver: boolean;
}

const cuts: readonly StatementCut[] = ["before", "sent", "after"];
const statements = [
  "queue_claim",
  "queue_claim",
  "queue_write",
  "queue_write",
  "queue_accept",
  "queue_renew",
  "queue_forwarded",
];

export class SharedDatabase implements AsyncDisposable {
  /** Statements and connections that were cut off, restarts, and fail-overs. */
  events = 0;
  readonly #plan: DatabasePlan;
  readonly #random: () => number;
  readonly #servers: PostgresServer[] = [];
  readonly #cutters: StatementCutter[] = [];
  #primary = 0;

  constructor(plan: DatabasePlan, random: () => number) {
    [this.#plan, this.#random] = [plan, random];
  }

  async start(): Promise<void> {
    this.#servers.push(await PostgresServer.start());
    if (this.#plan.failsOver) {
      this.#servers.push(await (this.#servers[0] as PostgresServer).standby({ isSynchronous: true }));
    }
    for (const { port } of this.#servers) {
      this.#cutters.push(await StatementCutter.start({ host: "127.0.0.1", port }));
    }
    await using _ = await this.#open({ mustExist: false });
  }

  get url(): string {
    return `postgres://baton@${this.#cutters.map(({ port }) => `127.0.0.1:${port}`).join(",")}/postgres`;
  }

  async disturb(): Promise<void> {
    const { disturbances, failsOver } = this.#plan;
    const failOverAt = failsOver ? Math.floor(this.#random() * disturbances) : -1;
    for (let event = 0; event < disturbances; event++) {
      await sleep(systemClock(), 100 + this.#random() * 1200);
      this.events++;
      if (event === failOverAt) await this.#failOver();
      else await this.#disturbOnce();
    }
  }

  async problems(): Promise<readonly string[]> {
    await using store = await this.#open({ mustExist: true });
    return (await store.verify()).problems;
  }

  sql(text: string): Promise<string> {
    return (this.#servers[this.#primary] as PostgresServer).sql(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of [...this.#cutters, ...this.#servers]) await one[Symbol.asyncDispose]();
  }

  #open({ mustExist }: { readonly mustExist: boolean }): Promise<PostgresRetryStore> {
    const address = parseDatabaseUrl(this.url, { mayHavePassword: false, env: {} });
    return PostgresRetryStore.open({ address, name: "default", rules: readOnlyRules, mustExist, migrates: !mustExist });
  }

  async #disturbOnce(): Promise<void> {
    const dice = this.#random();
    const [server, cutter] = [this.#servers[this.#primary], this.#cutters[this.#primary]];
    if (dice < 0.2) {
      await server?.kill();
      await sleep(systemClock(), this.#random() * 1500);
      await server?.resume();
    } else if (dice < 0.35) cutter?.cutAll();
    else cutter?.arm(this.#pick(cuts), this.#pick(statements));
  }

  async #failOver(): Promise<void> {
    await this.#servers[0]?.kill();
    await this.#servers[1]?.promote();
    this.#primary = 1;
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }
}
