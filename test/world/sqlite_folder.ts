/**
 * The real database of a keeper, in a folder in memory, as a simulated disk has it. A killed process leaves what it has
 * written, in a copy of the folder. A power cut leaves any of the 512-byte sectors that a commit, or a checkpoint, had
 * not flushed. Not shown: the order of writes within a commit, and a flush that SQLite forgets.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeeperDatabase } from "../../src/coordination/keeper/storage/keeper_database.ts";
import { keeperDatabaseFileName, zxidMarkFileName } from "../../src/coordination/keeper/storage/keeper_rows.ts";
import type { Chance } from "./chance.ts";
import type { SimWorld } from "./sim_world.ts";
import { emptyLog, findLogEnd, sectorBytes, startOfCommit, tornFile } from "./sqlite_log.ts";

const logName = `${keeperDatabaseFileName}-wal`;
const memory = "/dev/shm";

/** Frames of a commit that are not flushed: from this byte of the log on. */
interface UnflushedFrames {
  readonly start: number;
  readonly untilMs: number;
}

/** A file before a checkpoint that is not flushed; the file itself has the state after it. */
interface UnflushedRows {
  readonly before: Uint8Array;
  readonly untilMs: number;
}

/**
 * A flipped bit is recognized by the bytes of its block. Blocks divide the pages of the rows, which SQLite writes as a
 * whole.
 */
const blockBytes = 64;

export class SqliteFolder implements Disposable {
  readonly #world: SimWorld;
  readonly #chance: Chance;
  readonly #base = mkdtempSync(join(existsSync(memory) ? memory : tmpdir(), "baton-simulation-"));
  #lives = 0;
  #database: KeeperDatabase | null = null;
  #log: UnflushedFrames | null = null;
  #logEnd = emptyLog;
  #mark: Uint8Array = new Uint8Array();
  #rows: UnflushedRows | null = null;
  /** The file of the rows when it was last read: only a checkpoint changes it. */
  #image = { bytes: new Uint8Array(), changed: 0n };

  constructor(world: SimWorld, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
    mkdirSync(this.#folder);
  }

  /** Opens the database as it was left. Throws what a keeper's start would throw. */
  open(): KeeperDatabase {
    this.#log = this.#rows = null;
    this.#database = new KeeperDatabase(this.#folder);
    this.#image = this.#readImage();
    this.#logEnd = findLogEnd(this.#databasePath);
    return this.#database;
  }

  get database(): KeeperDatabase {
    if (this.#database === null) throw new Error("the database is not open");
    return this.#database;
  }

  /** Commits; the log is flushed after this time. */
  commit(changes: Uint8Array, durationMs: number): void {
    this.#mark = this.#read(zxidMarkFileName);
    const before = this.#logEnd;
    this.database.commit(changes);
    this.#logEnd = findLogEnd(this.#databasePath);
    const start = startOfCommit(before, this.#logEnd);
    this.#log = { start, untilMs: this.#world.nowMs + durationMs };
  }

  /** Returns the time of a checkpoint; 0 if there is nothing to do. */
  checkpoint(occasion: "idle" | "busy", durationMs: number): number {
    this.database.checkpoint(occasion);
    const { bytes: before, changed } = this.#image;
    if (this.#changed() === changed) return 0;
    this.#image = this.#readImage();
    this.#rows = { before, untilMs: this.#world.nowMs + durationMs };
    this.#log = null; // SQLite flushes the log before a checkpoint
    this.#world.count("effect checkpoint");
    return durationMs;
  }

  /**
   * Flips a bit of a file, and returns the function that flips it back if it is still there. No process has the
   * database open.
   */
  flipBit(chance: Chance): () => void {
    const names = [keeperDatabaseFileName, logName, zxidMarkFileName].filter((name) => this.#read(name).byteLength > 0);
    if (names.length === 0) return () => {};
    const name = chance.oneOf(names);
    const written = this.#read(name);
    const bit = chance.whole(0, 8 * written.byteLength - 1);
    const at = bit >> 3;
    const flipped = written.slice();
    flipped[at] = (flipped[at] ?? 0) ^ (1 << (bit & 7));
    this.#write(name, flipped);
    return () => {
      const now = this.#read(name);
      const block = [at - at % blockBytes, at - at % blockBytes + blockBytes] as const;
      if (Buffer.compare(now.subarray(...block), flipped.subarray(...block)) !== 0) return; // was written again
      now[at] = written[at] ?? 0;
      this.#write(name, now);
    };
  }

  close(): void {
    const database = this.#database;
    this.#database = null;
    database?.close();
  }

  /**
   * Leaves the files as the next process finds them. `isWritten`: the process has handed over all of its last commit.
   */
  crash(how: "killed" | "lost", isWritten: boolean): void {
    const { nowMs } = this.#world;
    const from = this.#folder;
    const log = this.#log !== null && this.#log.untilMs > nowMs ? this.#log : null;
    const rows = this.#rows !== null && this.#rows.untilMs > nowMs ? this.#rows : null;
    this.#lives++;
    mkdirSync(this.#folder);
    for (const name of [keeperDatabaseFileName, logName, zxidMarkFileName]) {
      if (existsSync(join(from, name))) copyFileSync(join(from, name), join(this.#folder, name));
    }
    if (log !== null && !(how === "killed" && isWritten)) {
      this.#write(logName, how === "lost" ? this.#tornLog(log.start) : this.#cutLog(log.start));
      // The mark is raised after the log was flushed.
      if (this.#mark.byteLength > 0) this.#write(zxidMarkFileName, this.#mark);
      else rmSync(join(this.#folder, zxidMarkFileName), { force: true });
    }
    if (rows !== null && how === "lost") {
      this.#write(keeperDatabaseFileName, tornFile(rows.before, this.#read(keeperDatabaseFileName), this.#chance));
      this.#world.count("effect checkpoint torn by a power cut");
    }
    this.close();
    rmSync(from, { recursive: true, force: true });
  }

  [Symbol.dispose](): void {
    this.close();
    rmSync(this.#base, { recursive: true, force: true });
  }

  get #folder(): string {
    return join(this.#base, String(this.#lives));
  }

  get #databasePath(): string {
    return join(this.#folder, keeperDatabaseFileName);
  }

  /** Any of the sectors of the frames are there. The file may have lost its new length. */
  #tornLog(start: number): Uint8Array {
    const bytes = this.#read(logName);
    const { bytes: end } = this.#logEnd;
    const kept = this.#chance.oneOf([0.3, 0.7, 0.95, 0.99]);
    let length = start;
    for (let at = start - start % sectorBytes; at < end; at += sectorBytes) {
      const to = Math.min(at + sectorBytes, end);
      if (this.#chance.is(kept)) length = to;
      else bytes.fill(0, Math.max(at, start), to);
    }
    return bytes.subarray(0, length);
  }

  /** The beginning of the frames is there. */
  #cutLog(start: number): Uint8Array {
    return this.#read(logName).subarray(0, start + Math.floor((this.#logEnd.bytes - start) * this.#chance.next()));
  }

  #read(name: string): Uint8Array<ArrayBuffer> {
    const path = join(this.#folder, name);
    return existsSync(path) ? new Uint8Array(readFileSync(path)) : new Uint8Array();
  }

  #write(name: string, bytes: Uint8Array): void {
    writeFileSync(join(this.#folder, name), bytes);
  }

  #changed(): bigint {
    return statSync(join(this.#folder, keeperDatabaseFileName), { bigint: true }).mtimeNs;
  }

  #readImage() {
    return { bytes: this.#read(keeperDatabaseFileName), changed: this.#changed() };
  }
}
