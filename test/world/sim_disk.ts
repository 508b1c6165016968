/**
 * The simulated disk of a keeper: rows that are flushed, and commits on their way. A killed process leaves what was
 * written; a power cut leaves any of the sectors that were not flushed, and a commit whose sectors are not all there
 * never happened.
 */
import { BatonError } from "../../src/base/errors.ts";
import {
  decodeKeeperRows,
  encodeKeeperRows,
  type KeeperDatabaseRow,
} from "../../src/coordination/keeper/storage/keeper_rows.ts";
import type { Chance } from "./chance.ts";
import { describe, type SimProcess } from "./sim_process.ts";
import type { SimWorld } from "./sim_world.ts";
import { SqliteFolder } from "./sqlite_folder.ts";
import { sectorBytes } from "./sqlite_log.ts";

/** A commit that is not flushed. */
interface PendingCommit {
  readonly bytes: Uint8Array;
  readonly writtenMs: number;
  isOver: boolean;
}

export class SimDisk implements Disposable {
  readonly world: SimWorld;
  readonly #chance: Chance;
  readonly nodes = new Map<bigint, Uint8Array>();
  readonly sessions = new Map<bigint, Uint8Array>();
  zxid = 0n;
  /** The usual time of a flush, in milliseconds. */
  flushMs = 1;
  /** Faults that are in force. */
  faults = { slow: 0, full: 0, failing: 0 };
  #pending: PendingCommit[] = [];
  #lockedBy: { readonly process: SimProcess; readonly life: number } | null = null;
  #owner: object | null = null;
  /** The real database, in place of rows alone; null without. */
  readonly sqlite: SqliteFolder | null;
  /** A commit of a process that died: only the next one that opens the database knows whether it is there. */
  #undecided: PendingCommit | null = null;
  #onCommit: ((durationMs: number) => void)[] = [];
  /** Bits that are others than they were written. */
  #flippedBits = 0;
  #flippedRow: { readonly rows: Map<bigint, Uint8Array>; readonly id: bigint; readonly flipped: Uint8Array } | null =
    null;
  /** What the last process has read differs from what was written. */
  #hasReadFlipped = false;
  /** Called with the rows of each commit that is on the disk for good. */
  onFlushed: (nodes: readonly KeeperDatabaseRow[], sessions: readonly KeeperDatabaseRow[]) => void = () => {};

  constructor(world: SimWorld, name: string, { isSqlite = false }: { readonly isSqlite?: boolean } = {}) {
    this.world = world;
    this.#chance = world.chance.fork(`disk ${name}`);
    this.sqlite = isSqlite ? new SqliteFolder(world, world.chance.fork(`sectors ${name}`)) : null;
  }

  [Symbol.dispose](): void {
    this.sqlite?.[Symbol.dispose]();
  }

  /** Opens the rows for a process. Throws LOCK_BUSY while another process has them open. */
  open(process: SimProcess, thread: { spendMs(delayMs: number): void }): SimKeeperRows {
    const locked = this.#lockedBy;
    if (locked !== null && locked.process.life === locked.life) {
      throw new BatonError("LOCK_BUSY", "Another keeper owns the data");
    }
    this.#lockedBy = { process, life: process.life };
    this.#hasReadFlipped = false;
    process.whenDead((how) => this.#processDied(how));
    this.#openSqlite();
    const rows = new SimKeeperRows(this, thread);
    this.#owner = rows;
    return rows;
  }

  /** Flips a bit of what is stored, and returns the function that flips it back. One bit at a time. */
  readonly flipBit = (chance: Chance): () => void => {
    if (this.#flippedBits > 0) return () => {};
    this.#flippedBits++;
    const flipBack = this.sqlite === null ? this.#flipBitOfRow(chance) : this.sqlite.flipBit(chance);
    return () => {
      this.#flippedBits--;
      flipBack();
    };
  };

  #flipBitOfRow(chance: Chance): () => void {
    const rows = chance.is(0.7) || this.sessions.size === 0 ? this.nodes : this.sessions;
    if (rows.size === 0) return () => {};
    const [id, body] = chance.oneOf([...rows]);
    const flipped = body.slice();
    const bit = chance.whole(0, 8 * body.byteLength - 1);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    rows.set(id, flipped);
    this.#flippedRow = { rows, id, flipped };
    return () => {
      if (rows.get(id) === flipped) rows.set(id, body);
      this.#flippedRow = null;
    };
  }

  /** A process has read everything. */
  loaded(): void {
    const row = this.#flippedRow;
    this.#hasReadFlipped ||= row !== null && row.rows.get(row.id) === row.flipped;
  }

  /** A keeper serves what it has read: no bit of that may be another one. */
  serves(): void {
    if (this.#hasReadFlipped) this.world.fail("flipped bit believed", "a keeper serves what was not written");
  }

  /** A keeper has refused to start. */
  refused(): void {
    if (this.#flippedBits > 0) this.world.count("effect flipped bit");
  }

  isOwner(rows: SimKeeperRows): boolean {
    return this.#owner === rows;
  }

  /** Opens the database, and compares it with what must be there. */
  #openSqlite(): void {
    const { sqlite } = this;
    if (sqlite === null) return;
    try {
      sqlite.open();
    } catch (error) {
      if (this.#flippedBits === 0) this.world.fail("store not opened", describe(error));
      throw error;
    }
    const pieces = [...sqlite.database.load()].map(decodeKeeperRows);
    const zxid = pieces[0]?.zxid ?? 0n;
    const nodes = pieces.flatMap((piece) => piece.nodes);
    const sessions = pieces.flatMap((piece) => piece.sessions);
    const undecided = this.#undecided;
    this.#undecided = null;
    if (undecided !== null) {
      const commit = decodeKeeperRows(undecided.bytes);
      // Sessions that were opened are a commit without a transaction.
      const stored = new Map(sessions.map(({ id, body }) => [id, body?.toString()]));
      const isThere = commit.zxid === this.zxid
        ? commit.sessions.every(({ id, body }) => stored.get(id) === body?.toString())
        : commit.zxid <= zxid;
      this.world.count(`effect commit ${isThere ? "kept" : "torn"} by a power cut`);
      if (isThere) this.#apply(undecided);
    }
    const found = (rows: readonly KeeperDatabaseRow[]) =>
      rows.map(({ id, body }) => `${id} ${body?.toString()}`).sort().join("\n");
    if (
      zxid === this.zxid && found(nodes) === found(rowsOf(this.nodes)) &&
      found(sessions) === found(rowsOf(this.sessions))
    ) return;
    if (this.#flippedBits > 0) return void (this.#hasReadFlipped = true);
    this.world.fail(
      "store lost rows",
      `transaction ${zxid} of ${this.zxid}; ${nodes.length} of ${this.nodes.size} nodes`,
    );
  }

  /** Calls back once, in the next commit, with the time until it is on the disk. */
  atNextCommit(call: (durationMs: number) => void): void {
    this.#onCommit.push(call);
  }

  /** Writes a commit. Returns the time until it is on the disk. Throws when the disk is full or fails. */
  commit(bytes: Uint8Array): number {
    const { full, failing, slow } = this.faults;
    if (full > 0) {
      this.world.count("effect disk full");
      throw Object.assign(new Error("database or disk is full"), { code: "ENOSPC" });
    }
    if (failing > 0) {
      this.world.count("effect disk failing");
      throw new Error("disk I/O error");
    }
    if (slow > 0) this.world.count("effect disk slow");
    const usualMs = this.flushMs * this.#chance.between(0.3, this.#chance.is(0.03) ? 20 : 2);
    const durationMs = slow > 0 ? slow * this.#chance.between(0.5, 1) : usualMs;
    this.sqlite?.commit(bytes, durationMs);
    const pending = { bytes: bytes.slice(), writtenMs: this.world.nowMs + durationMs * 0.3, isOver: false };
    this.#pending.push(pending);
    this.world.after(durationMs, () => this.#flush(pending));
    for (const call of this.#onCommit.splice(0)) call(durationMs);
    return durationMs;
  }

  #flush(pending: PendingCommit): void {
    if (pending.isOver) return;
    pending.isOver = true;
    this.#pending = this.#pending.filter((one) => one !== pending);
    this.#apply(pending);
  }

  #apply(pending: PendingCommit): void {
    const { zxid, nodes, sessions } = decodeKeeperRows(pending.bytes);
    this.zxid = zxid;
    for (const [rows, changed] of [[this.nodes, nodes], [this.sessions, sessions]] as const) {
      for (const { id, body } of changed) body === null ? rows.delete(id) : rows.set(id, body);
    }
    this.onFlushed(nodes, sessions);
  }

  /** Decides which of the commits on their way are there for the next process. */
  #processDied(how: "killed" | "lost"): void {
    if (this.sqlite !== null) return this.#leaveSqlite(this.sqlite, how);
    let isLost = false;
    for (const pending of [...this.#pending]) {
      const isWritten = pending.writtenMs <= this.world.nowMs;
      isLost ||= how === "killed" ? !isWritten : !this.#keepsSectors(pending);
      if (isLost) pending.isOver = true;
      else this.#flush(pending);
    }
    this.#pending = [];
  }

  #leaveSqlite(sqlite: SqliteFolder, how: "killed" | "lost"): void {
    const [pending = null] = this.#pending;
    if (pending !== null) {
      pending.isOver = true;
      this.#undecided = pending;
      this.#pending = [];
    }
    sqlite.crash(how, pending === null || pending.writtenMs <= this.world.nowMs);
  }

  #keepsSectors({ bytes }: PendingCommit): boolean {
    const sectors = Math.ceil(bytes.byteLength / sectorBytes);
    let kept = 0;
    for (let sector = 0; sector < sectors; sector++) kept += Number(this.#chance.is(0.6));
    this.world.count(kept === sectors ? "effect commit kept by a power cut" : "effect commit torn by a power cut");
    return kept === sectors;
  }
}

/** The rows as the storage thread of a keeper sees them, in place of KeeperDatabase. */
export class SimKeeperRows {
  readonly #disk: SimDisk;
  readonly #thread: { spendMs(delayMs: number): void };

  constructor(disk: SimDisk, thread: { spendMs(delayMs: number): void }) {
    this.#disk = disk;
    this.#thread = thread;
  }

  *load(): Generator<Uint8Array, void, void> {
    const { zxid, nodes, sessions, sqlite } = this.#disk;
    if (sqlite !== null) return yield* sqlite.database.load();
    this.#disk.loaded();
    yield encodeKeeperRows(zxid, [], rowsOf(sessions));
    yield encodeKeeperRows(0n, rowsOf(nodes), []);
  }

  confirmOwner(): void {
    if (!this.#disk.isOwner(this)) throw new BatonError("LOCK_BUSY", "Another keeper owns the data");
    this.#disk.sqlite?.database.confirmOwner();
  }

  commit(changes: Uint8Array): void {
    this.confirmOwner();
    this.#thread.spendMs(this.#disk.commit(changes));
  }

  /** A full disk here is one that fails. */
  room(): null {
    return null;
  }

  checkpoint(occasion: "idle" | "busy"): void {
    const { sqlite, flushMs } = this.#disk;
    if (sqlite !== null) this.#thread.spendMs(sqlite.checkpoint(occasion, 20 * flushMs));
  }

  /** A log that is longer than its content has nothing more to show. */
  reserveLog(): void {}

  close(): void {
    this.#disk.sqlite?.close();
  }
}

function rowsOf(rows: ReadonlyMap<bigint, Uint8Array>): KeeperDatabaseRow[] {
  return [...rows].sort(([left], [right]) => (left < right ? -1 : 1)).map(([id, body]) => ({ id, body }));
}
