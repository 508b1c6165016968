/**
 * The disk of a topic server: the real store on a folder in memory. A commit is on its way for the time of a flush. A
 * killed process leaves what was written; a power cut leaves any of the sectors of the commits on their way, as the log
 * (WAL) of SQLite has them. A checkpoint flushes everything before it.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TopicDatabase, topicDatabaseName } from "../../../../src/pubsub/store/sqlite/topic_database.ts";
import type { Chance } from "../../../world/chance.ts";
import type { DiskFaults } from "../../../world/apply_faults.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";
import { emptyLog, findLogEnd, keepsCommit, readIfThere, startOfCommit } from "../../../world/sqlite_log.ts";

const fileSystemBytes = 1 << 30;

/** A commit that is not flushed: the bytes of the log that it has written. */
interface PendingCommit {
  readonly from: number;
  readonly to: number;
  readonly writtenMs: number;
  readonly flushedMs: number;
}

export class TopicDisk {
  readonly world: SimWorld;
  readonly folder: string;
  readonly #chance: Chance;
  flushMs = 1;
  readonly faults: DiskFaults = { slow: 0, full: 0, failing: 0 };
  /** A full disk is seen before a write fails; with a quota it is not. */
  hasQuota = false;
  #database: SimTopicDatabase | null = null;
  #pending: PendingCommit[] = [];
  #onCommit: ((durationMs: number) => void)[] = [];
  #log = emptyLog;

  constructor(world: SimWorld, name: string, folder: string) {
    this.world = world;
    this.folder = folder;
    this.#chance = world.chance.fork(`disk ${name}`);
  }

  get #databasePath(): string {
    return join(this.folder, topicDatabaseName);
  }

  open(process: SimProcess, thread: { spendMs(delayMs: number): void }, acceptDamagedLog: boolean): SimTopicDatabase {
    const database = new SimTopicDatabase(this, thread, acceptDamagedLog);
    this.#database = database;
    this.#pending = [];
    this.noteLog();
    process.whenDead((how) => this.#processDied(how));
    return database;
  }

  closed(): void {
    this.#database = null;
    this.#pending = [];
  }

  get freeBytes(): number {
    return this.faults.full > 0 && !this.hasQuota ? 0 : fileSystemBytes / 2;
  }

  /** Throws when the disk is full, or fails. `commit` may be done when it fails. */
  check(commit: () => void): void {
    if (this.faults.full > 0) {
      this.world.count("effect disk full");
      throw new Error("database or disk is full");
    }
    if (this.faults.failing === 0) return;
    this.world.count("effect disk failing");
    if (this.#chance.is(0.5)) {
      commit();
      this.noteLog();
    }
    throw new Error("disk I/O error");
  }

  /** The log has grown by more than a commit: the next one begins behind it. */
  noteLog(): void {
    this.#log = findLogEnd(this.#databasePath);
  }

  /** Calls back once, in the next commit, with the time of its flush. */
  atNextCommit(call: (durationMs: number) => void): void {
    this.#onCommit.push(call);
  }

  /** Notes what a commit has written. Returns the time of its flush. */
  committed(): number {
    const before = this.#log;
    const after = this.#log = findLogEnd(this.#databasePath);
    if (after.salt !== before.salt) this.#pending = []; // the log began again: what was in it is flushed
    const [from, to] = [startOfCommit(before, after), after.bytes];
    if (to === from) return 0;
    const { slow } = this.faults;
    if (slow > 0) this.world.count("effect disk slow");
    const usualMs = this.flushMs * this.#chance.between(0.3, this.#chance.is(0.03) ? 20 : 2);
    const durationMs = slow > 0 ? slow * this.#chance.between(0.5, 1) : usualMs;
    const { nowMs } = this.world;
    this.#pending = this.#pending.filter(({ flushedMs }) => flushedMs > nowMs);
    // The thread waits for a flush before it writes again.
    const beginMs = Math.max(nowMs, this.#pending.at(-1)?.flushedMs ?? 0);
    const flushedMs = beginMs + durationMs;
    this.#pending.push({ from, to, writtenMs: beginMs + durationMs * 0.3, flushedMs });
    for (const call of this.#onCommit.splice(0)) call(durationMs);
    return durationMs;
  }

  /** A checkpoint flushes the log before it copies it. */
  flushed(): void {
    this.#pending = [];
  }

  #processDied(how: "killed" | "lost"): void {
    const database = this.#database;
    if (database === null) return;
    const path = this.#databasePath;
    const bytes = readFileSync(path);
    const log = readIfThere(`${path}-wal`);
    if (log !== null) this.#cut(log, how);
    database.closeFiles(); // empties the log
    writeFileSync(path, bytes);
    rmSync(`${path}-shm`, { force: true });
    if (log !== null) writeFileSync(`${path}-wal`, log);
    this.closed();
  }

  /** Takes from the log what the process that died has not written, or what the power cut has lost. */
  #cut(log: Uint8Array, how: "killed" | "lost"): void {
    const { nowMs } = this.world;
    for (const { from, to, writtenMs, flushedMs } of this.#pending) {
      if (flushedMs <= nowMs) continue;
      if (how === "killed" && writtenMs <= nowMs) continue;
      const isKept = how === "lost" && keepsCommit(log, { from, to }, { chance: this.#chance, nowMs });
      this.world.count(
        how === "killed"
          ? "effect commit not written by a killed process"
          : isKept
          ? "effect commit kept by a power cut"
          : "effect commit torn by a power cut",
      );
      if (isKept) continue;
      log.fill(0, how === "killed" ? from : to);
      return;
    }
  }
}

/** The real store of topics, whose commits take the time of the disk, and fail with it. */
class SimTopicDatabase extends TopicDatabase {
  readonly #disk: TopicDisk;
  readonly #thread: { spendMs(delayMs: number): void };

  constructor(disk: TopicDisk, thread: { spendMs(delayMs: number): void }, acceptDamagedLog: boolean) {
    super(disk.folder, { acceptDamagedLog });
    this.#disk = disk;
    this.#thread = thread;
  }

  override commit(): void {
    if (!this.inTransaction) return;
    this.#disk.check(() => super.commit());
    super.commit();
    this.#thread.spendMs(this.#disk.committed());
  }

  override checkpoint(): void {
    this.#disk.flushed();
    super.checkpoint();
  }

  override shortenLog(): void {
    this.#disk.flushed();
    super.shortenLog();
  }

  override fileSystem(): { readonly bytes: number; readonly freeBytes: number } {
    return { bytes: fileSystemBytes, freeBytes: this.#disk.freeBytes };
  }

  /** It depends on the version of SQLite, too. */
  override get owedBytes(): number {
    return 0;
  }

  /** How many pages are free depends on the version of SQLite: what happens next does not depend on it. */
  override shrink(pages: number): boolean {
    this.database.exec(`PRAGMA incremental_vacuum(${pages})`); // flushes what it writes
    this.#disk.noteLog();
    return false;
  }

  /** Larger files would only take time here. */
  override reserveLog(): void {}

  override close(): void {
    super.close();
    this.#disk.closed();
  }

  closeFiles(): void {
    super.close();
  }
}
