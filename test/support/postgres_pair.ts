/**
 * A PostgreSQL database of a test that is disturbed: a primary, and a standby if it replicates. Each client reaches
 * both through proxies of its own (`way`), whose ports stay the same, so the primary may be killed and the standby
 * promoted any number of times.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/support/clock.ts";
import { sleep } from "../../src/base/support/deadline.ts";
import { eventually } from "./eventually.ts";
import { PostgresServer } from "./postgres_server.ts";
import { SmallDisk } from "./small_disk.ts";
import { StatementCutter } from "./statement_cutter.ts";

export type Replication = "none" | "synchronous" | "asynchronous";

export interface PostgresPairOptions {
  readonly replication: Replication;
  /** Each server has a disk of this size, which `fillDisk` fills; it needs root. */
  readonly diskMebibytes?: number;
}

/** What one client has between itself and the database. */
export interface DatabaseWay {
  readonly url: string;
  /** One for each server of the pair. */
  readonly cutters: readonly StatementCutter[];
}

const settings = [
  "wal_retrieve_retry_interval = 200ms",
  "max_wal_size = 64MB",
  "wal_keep_size = 64MB",
  // The log says what happened, with a time in seconds, and not by which statement.
  "log_line_prefix = '%n '",
  "log_min_error_statement = panic",
  "log_error_verbosity = terse",
];

/** Statements may take 30 s, and the first one may come late. Milliseconds. */
const stallMsMax = 45_000;

const backends = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'baton %'";

export class PostgresPair implements AsyncDisposable {
  readonly replication: Replication;
  readonly #diskMebibytes: number | null;
  readonly #servers: (PostgresServer | null)[] = [];
  readonly #disks: (SmallDisk | null)[] = [];
  readonly #folders: string[] = [];
  readonly #ways: DatabaseWay[] = [];
  #primary = 0;

  private constructor({ replication, diskMebibytes }: PostgresPairOptions) {
    this.replication = replication;
    this.#diskMebibytes = diskMebibytes ?? null;
  }

  static async start(options: PostgresPairOptions): Promise<PostgresPair> {
    const pair = new PostgresPair(options);
    try {
      pair.#servers.push(await PostgresServer.start({ settings, ...pair.#place(0) }));
      if (options.replication !== "none") await pair.#addStandby(1);
      return pair;
    } catch (error) {
      await pair[Symbol.asyncDispose]();
      throw error;
    }
  }

  get primary(): PostgresServer {
    return this.#servers[this.#primary] as PostgresServer;
  }

  get isOnSmallDisk(): boolean {
    return this.#diskMebibytes !== null;
  }

  /** A client's own connection to the pair. */
  async way(): Promise<DatabaseWay> {
    const cutters: StatementCutter[] = [];
    for (const server of this.#servers) {
      cutters.push(await StatementCutter.start({ host: "127.0.0.1", port: server?.port ?? 0 }));
    }
    const hosts = cutters.map(({ port }) => `127.0.0.1:${port}`).join(",");
    const way = { url: `postgres://baton@${hosts}/postgres`, cutters };
    this.#ways.push(way);
    return way;
  }

  /** The proxy of this client before the present primary. */
  cutterOf({ cutters }: DatabaseWay): StatementCutter {
    return cutters[this.#primary] as StatementCutter;
  }

  sql(text: string): Promise<string> {
    return this.primary.sql(text);
  }

  /** Runs SQL that returns a number. */
  async count(text: string): Promise<number> {
    return Number(await this.sql(text));
  }

  /** SIGKILL, and the same data again after this time. */
  async restart(awayMs: number): Promise<void> {
    await this.primary.kill();
    await sleep(systemClock(), awayMs);
    await this.primary.resume();
  }

  /** All its processes stand still for this time. */
  async stop(forMs: number): Promise<void> {
    this.primary.signal("SIGSTOP");
    await sleep(systemClock(), forMs);
    this.primary.signal("SIGCONT");
  }

  /** Ends the wait or the work of statements, as a timeout does. Returns how many. */
  cancelStatements(): Promise<number> {
    return this.count(
      `SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)) FROM (${backends} AND state = 'active') AS b`,
    );
  }

  /** Ends connections as an administrator does. Returns how many. */
  endConnections(): Promise<number> {
    return this.count(`SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM (${backends}) AS b`);
  }

  /**
   * Another client holds locks for this time. Returns how many lines of the log say that a statement has waited too
   * long.
   */
  async lockRows(query: string, forMs: number): Promise<number> {
    const sinceMs = Date.now();
    await this.sql(`${query}; SELECT pg_sleep(${forMs / 1000})`);
    return this.#logged("lock timeout", sinceMs);
  }

  /**
   * One statement that changes the table takes longer than `statement_timeout`: a trigger makes it sleep. Others go on,
   * as far as they do not need its locks. Returns how many lines of the log say that a statement has timed out.
   */
  async stallStatement(table: string): Promise<number> {
    const sinceMs = Date.now();
    const body = "BEGIN IF nextval('public.stall') = 1 THEN PERFORM pg_sleep(60); END IF; RETURN NULL; END";
    await this.sql(
      `CREATE SEQUENCE IF NOT EXISTS public.stall; ALTER SEQUENCE public.stall RESTART;
        CREATE OR REPLACE FUNCTION public.stall() RETURNS trigger LANGUAGE plpgsql AS $$${body}$$;
        CREATE TRIGGER stall BEFORE UPDATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION public.stall()`,
    );
    try {
      const hits = () => this.#logged("statement timeout", sinceMs);
      for (let leftMs = stallMsMax; leftMs > 0 && hits() === 0; leftMs -= 100) await sleep(systemClock(), 100);
      return hits();
    } finally {
      await this.sql(`DROP TRIGGER stall ON ${table}`);
    }
  }

  /** Leaves no byte on the disk of the primary for this time. Returns how often the log says so. */
  async fillDisk(forMs: number): Promise<number> {
    const disk = this.#disks[this.#primary];
    if (disk === null || disk === undefined) throw new Error("The database has no disk of its own");
    const sinceMs = Date.now();
    disk.fill();
    await sleep(systemClock(), forMs);
    const hits = this.#logged("No space left on device", sinceMs);
    disk.makeRoom();
    // A log that has no room ends the server.
    if (await this.#isServing()) return hits;
    await this.primary.kill();
    await this.primary.resume();
    return Math.max(1, hits);
  }

  /**
   * The primary is killed for good, its standby is promoted and gets a standby of its own. With `losesMs`, the standby
   * has received nothing for this time. A synchronous pair commits nothing without a standby.
   */
  async failOver(losesMs = 0): Promise<void> {
    const next = this.#primary === 0 ? 1 : 0;
    const [old, standby] = [this.primary, this.#servers[next] as PostgresServer];
    if (losesMs > 0) {
      await this.#waitForStandby();
      await standby.detach();
      await sleep(systemClock(), losesMs);
    }
    await old.kill();
    await standby.promote({ waitsForStandby: this.replication === "synchronous" });
    const gone = this.#primary;
    this.#primary = next;
    await old[Symbol.asyncDispose]();
    await this.#addStandby(gone);
  }

  /** The number of promotions and one more. */
  timeline(): Promise<number> {
    return this.count("SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { cutters } of this.#ways) for (const cutter of cutters) await cutter[Symbol.asyncDispose]();
    for (const server of this.#servers) await server?.[Symbol.asyncDispose]();
    for (const disk of this.#disks) disk?.[Symbol.dispose]();
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
  }

  async #addStandby(at: number): Promise<void> {
    const isSynchronous = this.replication === "synchronous";
    this.#servers[at] = null;
    const server = await this.primary.standby({ isSynchronous, ...this.#place(at) });
    this.#servers[at] = server;
    for (const { cutters } of this.#ways) cutters[at]?.retarget({ host: "127.0.0.1", port: server.port });
  }

  /** Where a server has its folder. */
  #place(at: number): { readonly parent?: string } {
    if (this.#diskMebibytes === null) return {};
    const folder = this.#folders[at] ??= mkdtempSync(join(tmpdir(), "baton-postgres-disk-"));
    chmodSync(folder, 0o755); // PostgreSQL runs as another user
    const disk = join(folder, "disk");
    this.#disks[at] ??= new SmallDisk(disk, this.#diskMebibytes);
    return { parent: disk };
  }

  async #waitForStandby(): Promise<void> {
    const behind = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND " +
      "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), flush_lsn) < 65536";
    await eventually(async () => await this.count(behind) > 0, { withinMs: 30_000, everyMs: 20, what: "the standby" });
  }

  async #isServing(): Promise<boolean> {
    const isOpen = () => this.primary.sql("SELECT 1").then(() => true, () => false);
    for (let tries = 0; tries < 50 && this.primary.isRunning; tries++) {
      if (await isOpen()) return true;
      await sleep(systemClock(), 100);
    }
    return false;
  }

  #logged(text: string, sinceMs: number): number {
    return this.primary.log.split("\n").filter((line) =>
      Number.parseFloat(line) * 1000 >= sinceMs && line.includes(text)
    )
      .length;
  }
}
