/**
 * The disk of a machine with a message store: the real store on a folder in memory, which all processes of the machine
 * use. A commit keeps the store locked while it is flushed. A killed process leaves what it has written; a power cut
 * leaves any of the sectors of the commit, or of the checkpoint, that was on its way.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RetryDatabase, retryDatabaseFileName } from "../../../../src/retry/queue/sqlite/retry_database.ts";
import type { SqlRow, SqlValue } from "../../../../src/base/storage/sql_row.ts";
import type { DiskFaults } from "../../../world/apply_faults.ts";
import type { Chance } from "../../../world/chance.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";
import { emptyLog, findLogEnd, keepsCommit, readIfThere, startOfCommit, tornFile } from "../../../world/sqlite_log.ts";

const fileSystemBytes = 1 << 30;

/** The bytes of the log that the last commit has written. */
interface PendingCommit {
  readonly from: number;
  readonly to: number;
  readonly process: SimProcess;
  readonly writtenMs: number;
  readonly flushedMs: number;
}

export interface RetryDiskOptions {
  readonly flushMs: number;
  /** A full disk is seen before a write fails; with a quota it is not. */
  readonly hasQuota: boolean;
  /** Commits from one checkpoint to the next. */
  readonly checkpointEvery: number;
}

export class RetryDisk {
  readonly world: SimWorld;
  readonly folder: string;
  readonly faults: DiskFaults = { slow: 0, full: 0, failing: 0 };
  readonly #options: RetryDiskOptions;
  readonly #chance: Chance;
  readonly #open = new Map<SimRetryDatabase, SimProcess>();
  #pending: PendingCommit | null = null;
  #log = emptyLog;
  /** The rows before a checkpoint that is not flushed; the file itself has those after it. */
  #rows: { readonly before: Uint8Array; readonly untilMs: number } | null = null;
  #commits = 0;
  #lockedUntilMs = 0;
  #onCommit: ((process: SimProcess, durationMs: number) => boolean)[] = [];
  /** A file that is only appended to, and what of it is flushed. */
  #appended: { readonly path: string; readonly bytes: number } | null = null;

  constructor(world: SimWorld, folder: string, options: RetryDiskOptions) {
    this.world = world;
    this.folder = folder;
    this.#options = options;
    this.#chance = world.chance.fork("disk");
  }

  get #databasePath(): string {
    return join(this.folder, retryDatabaseFileName);
  }

  open(process: SimProcess, spend: (durationMs: number) => void, mustExist: boolean): SimRetryDatabase {
    const database = new SimRetryDatabase(this, process, spend, mustExist);
    this.#open.set(database, process);
    this.#log = findLogEnd(this.#databasePath);
    process.whenDead((how) => this.#processDied(process, how));
    return database;
  }

  closed(database: SimRetryDatabase): void {
    this.#open.delete(database);
    if (this.#open.size === 0) this.#flushed(); // the last one that closes the store flushes everything
  }

  /** Rows of the store as the next transaction will see them; null while no process has it open. */
  read(sql: string, ...values: SqlValue[]): SqlRow[] | null {
    const [database] = this.#open.keys();
    return database === undefined ? null : database.all(sql, ...values);
  }

  get freeBytes(): number {
    return this.faults.full > 0 && !this.#options.hasQuota ? 0 : fileSystemBytes / 2;
  }

  /** The time for which a commit keeps the store locked. */
  readonly lockedMs = (): number => Math.max(0, this.#lockedUntilMs - this.world.nowMs);

  /** Throws when the disk is full, or fails. `write` may be done when it fails. */
  check(write: () => void): void {
    if (this.faults.full > 0) {
      this.world.count("effect disk full");
      throw new Error("database or disk is full");
    }
    if (this.faults.failing === 0) return;
    this.world.count("effect disk failing");
    if (this.#chance.is(0.5)) {
      write();
      this.#log = findLogEnd(this.#databasePath); // the next commit begins behind it
    }
    throw new Error("disk I/O error");
  }

  /** Calls back in commits, with the time of their flush, until it returns true. */
  atCommit(call: (process: SimProcess, durationMs: number) => boolean): void {
    this.#onCommit.push(call);
  }

  /** The time of the next flush. */
  #flushMs(): number {
    const { slow } = this.faults;
    if (slow > 0) {
      this.world.count("effect disk slow");
      return slow * this.#chance.between(0.5, 1);
    }
    return this.#options.flushMs * this.#chance.between(0.3, this.#chance.is(0.03) ? 20 : 2);
  }

  /** Notes what a commit has written. Returns the time until the store is no longer locked. */
  committed(process: SimProcess, checkpoint: () => void): number {
    if (this.lockedMs() > 0) throw new Error("a process writes to a store that another one has locked");
    const before = this.#log;
    this.#log = findLogEnd(this.#databasePath);
    const durationMs = this.#flushMs();
    const { nowMs } = this.world;
    const from = startOfCommit(before, this.#log);
    const flushedMs = nowMs + durationMs;
    this.#pending = { from, to: this.#log.bytes, process, writtenMs: nowMs + durationMs * 0.3, flushedMs };
    this.#lockedUntilMs = flushedMs;
    this.#onCommit = this.#onCommit.filter((call) => !call(process, durationMs));
    if (++this.#commits % this.#options.checkpointEvery === 0) this.#checkpoint(checkpoint);
    return this.lockedMs();
  }

  /** What SQLite does itself from time to time: the log is flushed, then copied. */
  #checkpoint(checkpoint: () => void): void {
    const before = readFileSync(this.#databasePath);
    this.#pending = null;
    checkpoint();
    this.world.count("mark checkpoint");
    this.#lockedUntilMs += this.#flushMs();
    this.#rows = { before, untilMs: this.#lockedUntilMs };
  }

  /** A checkpoint that empties the log flushes everything. */
  readonly emptied = (): void => this.#flushed();

  /** Notes that a file was appended to. Returns the time of its flush; then `flushed` is to be called. */
  appended(path: string): { readonly durationMs: number; readonly flushed: () => void } {
    const bytes = sizeOf(path);
    this.#appended ??= { path, bytes: 0 };
    return { durationMs: this.#flushMs(), flushed: () => void (this.#appended = { path, bytes }) };
  }

  #flushed(): void {
    this.#pending = null;
    this.#rows = null;
  }

  #processDied(process: SimProcess, how: "killed" | "lost"): void {
    const own = [...this.#open].filter(([, owner]) => owner === process).map(([database]) => database);
    // A machine without power has no process left.
    if (how === "lost") this.#closeAll(how, process);
    else if (own.length === this.#open.size) this.#closeAll(how, process);
    else {
      for (const database of own) {
        database.closeFiles();
        this.#open.delete(database);
      }
    }
  }

  /** Leaves the files as the next process finds them. */
  #closeAll(how: "killed" | "lost", process: SimProcess): void {
    if (how === "lost") this.#cutAppended();
    if (this.#open.size === 0) return;
    const path = this.#databasePath;
    const rows = how === "lost" ? this.#rowsAfterCut() : readFileSync(path);
    const log = readIfThere(`${path}-wal`);
    if (log !== null) this.#cutLog(log, how, process);
    for (const database of this.#open.keys()) database.closeFiles(); // empties the log
    this.#open.clear();
    writeFileSync(path, rows);
    rmSync(`${path}-shm`, { force: true });
    if (log !== null) writeFileSync(`${path}-wal`, log);
    this.#log = emptyLog;
    this.#lockedUntilMs = 0;
    this.#flushed();
  }

  /** Takes from the log what the process that died has not written, or what the power cut has lost. */
  #cutLog(log: Uint8Array, how: "killed" | "lost", process: SimProcess): void {
    const { nowMs } = this.world;
    const pending = this.#pending;
    if (pending === null || pending.flushedMs <= nowMs) return;
    const { from, to, writtenMs } = pending;
    if (how === "killed") {
      if (writtenMs <= nowMs || pending.process !== process) return;
      this.world.count("effect commit not written by a killed process");
      log.fill(0, from);
      return;
    }
    const isKept = keepsCommit(log, { from, to }, { chance: this.#chance, nowMs });
    this.world.count(isKept ? "effect commit kept by a power cut" : "effect commit torn by a power cut");
    if (!isKept) log.fill(0, to);
  }

  /** The rows after a power cut: any of the sectors of a checkpoint on its way are there. */
  #rowsAfterCut(): Uint8Array {
    const after = readFileSync(this.#databasePath);
    if (this.#rows === null || this.#rows.untilMs <= this.world.nowMs) return after;
    this.world.count("effect checkpoint torn by a power cut");
    return tornFile(this.#rows.before, after, this.#chance.fork(`rows at ${this.world.nowMs}`));
  }

  /** What was appended and not flushed is there in part. */
  #cutAppended(): void {
    const appended = this.#appended;
    if (appended === null) return;
    const bytes = sizeOf(appended.path);
    if (bytes <= appended.bytes) return;
    this.world.count("effect file cut by a power cut");
    const file = openSync(appended.path, "r+");
    ftruncateSync(file, appended.bytes + Math.floor(this.#chance.next() * (bytes - appended.bytes + 1)));
    this.#appended = { path: appended.path, bytes: fstatSync(file).size };
    closeSync(file);
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** The real store, whose commits take the time of the disk, and fail with it. */
export class SimRetryDatabase extends RetryDatabase {
  readonly #disk: RetryDisk;
  readonly #process: SimProcess;
  readonly #spend: (durationMs: number) => void;
  #changes = 0;

  constructor(disk: RetryDisk, process: SimProcess, spend: (durationMs: number) => void, mustExist: boolean) {
    super(disk.folder, { mustExist });
    this.#disk = disk;
    this.#process = process;
    this.#spend = spend;
    // The number of pages, and so the time, differs between versions.
    this.database.exec("PRAGMA wal_autocheckpoint = 0");
    this.#changes = this.#totalChanges();
  }

  override commit(): void {
    if (!this.inTransaction) return;
    const changes = this.#totalChanges();
    if (changes === this.#changes) return super.commit();
    this.#changes = changes;
    this.#disk.check(() => super.commit());
    super.commit();
    this.#spend(this.#disk.committed(this.#process, () => super.checkpoint("PASSIVE")));
  }

  override checkpoint(mode: "PASSIVE" | "FULL" | "TRUNCATE" = "PASSIVE"): void {
    super.checkpoint(mode);
    this.#disk.emptied();
  }

  /** Larger files would only take time here. */
  override reserveLog(): void {}

  /** How many there are differs between versions of SQLite. */
  protected override freeUnusedPages(): void {}

  override fileSystem(): { readonly bytes: number; readonly freeBytes: number } {
    return { bytes: fileSystemBytes, freeBytes: this.#disk.freeBytes };
  }

  override close(): void {
    super.close();
    this.#disk.closed(this);
  }

  closeFiles(): void {
    super.close();
  }

  #totalChanges(): number {
    return Number(this.statement("SELECT total_changes() AS count").get()?.["count"]);
  }
}
