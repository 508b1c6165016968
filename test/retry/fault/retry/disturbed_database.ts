/**
 * The database of a round: killed and started again, cut off in the middle of statements, failed over to a synchronous
 * standby; its statements are cancelled, time out behind locks and by themselves, and its disk is full.
 */
import { parseDatabaseUrl } from "../../../../src/base/postgres/database_address.ts";
import { readOnlyRules } from "../../../../src/retry/queue/store_rules.ts";
import { PostgresRetryStore } from "../../../../src/retry/queue/postgres/postgres_retry_store.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { type DatabaseWay, PostgresPair } from "../../../support/postgres_pair.ts";
import type { StatementCut } from "../../../support/statement_cutter.ts";

export interface DatabasePlan {
  /** Restarts, lost connections, and statements that are cut off. */
  readonly disturbances: number;
  /** The primary is killed for good, and its synchronous standby is promoted. */
  readonly failsOver: boolean;
  /** Its disk is small, and full now and then. */
  readonly isOnSmallDisk: boolean;
  /** A client holds locks for longer than statements wait. */
  readonly locks: boolean;
  /** A statement takes longer than it may. */
  readonly stalls: boolean;
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
const diskMebibytes = 384;
/** Statements wait for a lock for 10 s. */
const lockMs = 11_000;

export class DisturbedDatabase implements AsyncDisposable {
  /** How often each disturbance had an effect. */
  readonly effects = new Map<string, number>();
  readonly #plan: DatabasePlan;
  readonly #random: () => number;
  #pair: PostgresPair | null = null;
  #way: DatabaseWay | null = null;

  constructor(plan: DatabasePlan, random: () => number) {
    [this.#plan, this.#random] = [plan, random];
  }

  async start(): Promise<void> {
    const { failsOver, isOnSmallDisk } = this.#plan;
    const replication = failsOver ? "synchronous" : "none";
    this.#pair = await PostgresPair.start({ replication, ...(isOnSmallDisk ? { diskMebibytes } : {}) });
    this.#way = await this.#pair.way();
    await using _ = await this.#open({ mustExist: false });
  }

  get url(): string {
    return this.#way?.url ?? "";
  }

  async disturb(): Promise<void> {
    const { disturbances, failsOver, locks, stalls } = this.#plan;
    const failOverAt = failsOver ? Math.floor(this.#random() * disturbances) : -1;
    const lockAt = locks ? (failOverAt + 1) % disturbances : -1;
    const stallAt = stalls ? (failOverAt + 2) % disturbances : -1;
    for (let event = 0; event < disturbances; event++) {
      await sleep(systemClock(), 100 + this.#random() * 1200);
      const [name, count] = event === failOverAt
        ? await this.#failOver()
        : event === lockAt
        ? await this.#lock()
        : event === stallAt
        ? ["statement timeouts", await this.#pair?.stallStatement("baton.retry") ?? 0] as const
        : await this.#disturbOnce();
      if (count > 0) this.effects.set(name, (this.effects.get(name) ?? 0) + count);
    }
    this.#pair?.cutterOf(this.#way as DatabaseWay).disarm();
  }

  async problems(): Promise<readonly string[]> {
    await using store = await this.#open({ mustExist: true });
    return (await store.verify()).problems;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pair?.[Symbol.asyncDispose]();
  }

  #open({ mustExist }: { readonly mustExist: boolean }): Promise<PostgresRetryStore> {
    const address = parseDatabaseUrl(this.url, { mayHavePassword: false, env: {} });
    return PostgresRetryStore.open({ address, name: "default", rules: readOnlyRules, mustExist, migrates: !mustExist });
  }

  /** What was done, and how often it had an effect. */
  async #disturbOnce(): Promise<readonly [string, number]> {
    const [pair, way] = [this.#pair as PostgresPair, this.#way as DatabaseWay];
    const cutter = pair.cutterOf(way);
    const dice = this.#random();
    if (dice < 0.15) {
      await pair.restart(this.#random() * 1500);
      return ["restarts", 1];
    }
    if (dice < 0.25) return ["lost connections", cutter.cutAll()];
    if (dice < 0.35) return ["ended connections", await pair.endConnections()];
    if (dice < 0.5) return ["cancelled statements", await this.#cancel()];
    if (dice < 0.75 && this.#plan.isOnSmallDisk) {
      return ["full disks", await pair.fillDisk(200 + this.#random() * 2500)];
    }
    const before = cutter.cuts;
    cutter.arm(this.#pick(cuts), this.#pick(statements));
    await sleep(systemClock(), 300);
    return ["cut statements", cutter.cuts - before];
  }

  async #failOver(): Promise<readonly [string, number]> {
    await this.#pair?.failOver();
    return ["fail-overs", 1];
  }

  async #lock(): Promise<readonly [string, number]> {
    const held = await this.#pair?.lockRows("SELECT 1 FROM baton.retry FOR UPDATE", lockMs);
    return ["lock timeouts", held ?? 0];
  }

  /** Statements are short: one is met at one of many tries. */
  async #cancel(): Promise<number> {
    for (let tries = 0; tries < 20; tries++) {
      const count = await this.#pair?.cancelStatements() ?? 0;
      if (count > 0) return count;
    }
    return 0;
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }
}
