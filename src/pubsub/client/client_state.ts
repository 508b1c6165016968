/**
 * The state of a client ID: its session number, its position in each topic, and the puts whose outcome is unknown. Each
 * ID has one SQLite file, which only one process can have open at a time. This module only stores; other modules
 * decide. All methods except `open` are synchronous.
 */
import { accessSync, closeSync, constants, mkdirSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { BatonError, errorMessage, systemCallErrorReason } from "../../base/errors.ts";
import { sha256Hex } from "../../base/support/digest.ts";
import { refuseLinksOfOthers } from "../../base/support/open_output.ts";
import { backoffMs, requestBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { sleep } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { createPrivateFile } from "../../base/storage/durable_file.ts";
import type { SqlRow } from "../../base/storage/sql_row.ts";
import { findFileLockHolder } from "../../base/storage/file_lock_holder.ts";
import { SqliteFile } from "../../base/storage/sqlite_file.ts";
import { isDatabaseLocked } from "../../base/storage/storage_error.ts";
import { type ChecksumTable, defineChecksumTable, isSqliteDamageError } from "../../base/storage/checksum_table.ts";
import { noMessageId, type SessionToken } from "../wire/field_types.ts";
import { clientNumberStepMax, unrestrictedClientNumberMax } from "../wire/message_limits.ts";
import { ByteReader, ByteWriter, joinBytes } from "../../base/wire/bytes.ts";

/**
 * The most inputs per topic whose positions the state keeps. The inputs that were not used for the longest time are
 * dropped.
 */
const inputsMax = 100_000;

export interface SubscriberPosition {
  /** The ID of the last message that was acknowledged; -1 if this state does not know it. */
  readonly cursor: number;
  /**
   * The ID of the newest message whose delivery has begun. If `intent` is above `cursor`, a delivery has begun and not
   * ended.
   */
  readonly intent: number;
  /**
   * The folder into which the messages from `cursor` to `intent` were being written; null if they were not written into
   * a folder.
   */
  readonly folder: string | null;
}

/** The puts of one request whose outcome is unknown, with everything that is needed to send the same request again. */
export interface UnresolvedPutRequest {
  readonly topic: string;
  readonly session: SessionToken;
  /** The topic's registration number that the request contained. */
  readonly registration: number;
  /** The counter of the first message; the counters of the next messages follow without gaps. */
  readonly counter: number;
  readonly msgId: string | null;
  readonly bodies: readonly Uint8Array[];
}

/** How many messages of an input have been put into a topic. */
export interface PutInputProgress {
  /** Identifies the input. */
  readonly name: string;
  readonly taken: number;
  /** The digest of the messages that were taken from the input. It reveals a changed input. */
  readonly digest: string;
  /** The file that was read; undefined if the input is not a regular file with several messages. */
  readonly file?: PutFileMark | undefined;
}

/** Recognizes a file after its rotation. */
export interface PutFileMark {
  readonly ino: number;
  readonly modifiedMs: number;
  /** Short digests: of the first message of the file, of the first two, and so on. */
  readonly starts: readonly string[];
  /** The inode of the next file of this name, if that was seen while it was empty. It then has only new messages. */
  readonly emptyIno?: number;
  /** The file that had this name before. A program that still has it open may add messages to it. */
  readonly old?: PutOldFile | undefined;
  /**
   * The newest numbered files beside this one, as in app.log.1, that were rotated before this file was the log. Earlier
   * versions did not record them.
   */
  readonly earlier?: readonly EarlierFile[] | undefined;
  /** The order of the numbers. Recorded if this file had a number itself when it was found. */
  readonly order?: NumberOrder | undefined;
}

/** A numbered file, as a call saw it. */
export interface EarlierFile {
  readonly number: number;
  readonly ino: number;
  /** When the file was made; some file systems do not tell. */
  readonly bornMs: number;
  readonly modifiedMs: number;
  readonly size: number;
}

/**
 * The file that has the highest number. In `down` the oldest one has it: each rotation renames all files. In `up` the
 * newest one has it.
 */
export type NumberOrder = "down" | "up";

export interface PutOldFile {
  /** The name of the input that has its position. */
  readonly name: string;
  /** The size in bytes at which a call looked at it again and found nothing new; null before that. */
  readonly quietSize: number | null;
}

/**
 * Advice for a user whose state is damaged. The servers also know the positions, so only the puts with an unknown
 * outcome are lost.
 */
const damageAdvice =
  "; puts whose outcome is unknown are lost with it. Without this file, the first call exits with 84, and later " +
  "calls continue at the position that the servers know: move away";

const reportWaitMs = 1000;

/**
 * A limit for implausible session numbers. A response with such a number raises the client's number at most to this
 * limit, or by one step. Servers accept several more steps above the limit.
 */
const observedSessionMax = unrestrictedClientNumberMax - 4 * clientNumberStepMax;
/**
 * The highest plausible session number. A server may have accepted it from another program, which raised it step by
 * step.
 */
const likelySessionMax = unrestrictedClientNumberMax + 64 * clientNumberStepMax;

/**
 * Returns the session number from which a client continues. `own` is the number in the client's state; `said` is the
 * number that a response names as the client's last one. Whatever the response says, servers sooner or later accept the
 * number after the returned one. If wrong responses have raised the number too far, a later response lowers it again,
 * but not below `used`, the highest session number of stored puts.
 */
export function clientSessionAfterResponse(own: number, said: number, used: number): number {
  if (said < own) return own <= observedSessionMax ? own : Math.max(said, used);
  if (said <= likelySessionMax) return said;
  return Math.min(said, Math.max(observedSessionMax, own + clientNumberStepMax), Number.MAX_SAFE_INTEGER - 1);
}

export class ClientState implements Disposable {
  readonly id: string;
  readonly path: string;
  readonly #file: SqliteFile;
  #session: SessionToken | null = null;
  #nextIntentId: number;
  readonly #registrations = new Map<string, number>();
  /** True if transactions are flushed now, according to `PRAGMA synchronous`. */
  #isDurable = true;

  /**
   * Opens the state of a client ID. If another process uses the state, waits. Rejects with LOCK_BUSY after `waitMs`,
   * with CONFIG for a file of another ID or a newer format, or with CANNOT_CREATE, IO, or the signal's reason.
   */
  static async open(folder: string, id: string, { waitMs, clock, signal, onWait = () => {} }: {
    readonly waitMs: number;
    readonly clock: Clock;
    readonly signal?: AbortSignal | undefined;
    /** Called once with the reason, if the wait takes longer than a second. */
    readonly onWait?: (why: string) => void;
  }): Promise<ClientState> {
    try {
      refuseLinksOfOthers(folder);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    } catch (thrown) {
      throw new BatonError(
        "CANNOT_CREATE",
        `Cannot make the folder of client states ${folder}: ${systemCallErrorReason(thrown)}`,
      );
    }
    const startMs = clock.now();
    let hasReported = false;
    for (let attempt = 0;; attempt++) {
      try {
        return new ClientState(folder, id);
      } catch (thrown) {
        if (!isDatabaseLocked(thrown)) throw stateError(thrown, folder, id);
        const leftMs = startMs + waitMs - clock.now();
        if (leftMs <= 0) {
          const until = waitMs > 0 ? `, and has not ended within ${formatDuration(waitMs)}` : "";
          throw new BatonError("LOCK_BUSY", `Cannot use ${describeUser(folder, id)}${until}`);
        }
        if (!hasReported && waitMs - leftMs >= reportWaitMs) {
          hasReported = true;
          onWait(describeUser(folder, id));
        }
        await sleep(clock, Math.min(leftMs, 5 + backoffMs(attempt, requestBackoff)), signal);
      }
    }
  }

  private constructor(folder: string, id: string) {
    this.id = id;
    this.path = clientStateFilePath(folder, id);
    const { path } = this;
    this.#file = new SqliteFile({
      format: { what: `state of client "${id}"`, folder, path, applicationId, format: storedFormat, schema },
      busyMs: 0,
      // EXCLUSIVE keeps the lock until the file is closed or the process ends for any reason.
      pragmas: "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 4000",
      prepare: () => createPrivateFile(path), // the file contains message bodies
      addFirstRows: (database) => {
        database.prepare(clientStateTables.client.insert).run(
          ...clientStateTables.client.valuesToBind({ only: 0, id, session: 0 }),
        );
      },
    });
    this.#nextIntentId = this.#file.closeIfFails(() => {
      const stored = this.#file.get("SELECT id FROM client")?.["id"];
      if (stored !== id) {
        throw new BatonError("CONFIG", `${path} belongs to the client id ${JSON.stringify(stored)}, not to "${id}"`);
      }
      return Number(this.#file.get("SELECT max(id) AS id FROM intents")?.["id"] ?? 0) + 1;
    });
  }

  /**
   * Returns this process's session. Its number is one higher than the highest used number, and is stored durably before
   * this method returns.
   */
  currentSession(): SessionToken {
    return this.#session ??= this.nextSession();
  }

  /**
   * Returns a session with an unused number, which is stored durably before this method returns. Throws BAD_DATA if no
   * number is left.
   */
  nextSession(): SessionToken {
    const number = this.#sessionNumber + 1;
    if (!Number.isSafeInteger(number)) {
      throw new BatonError("BAD_DATA", `Client "${this.id}" has no session number left; use another client ID`);
    }
    this.runTransaction(() => this.#setSession(number));
    return Object.freeze({ number, key: crypto.randomUUID() });
  }

  /** Records a newer session number that a response has named. The next process then uses a higher number. */
  observeSession(said: number): void {
    const own = this.#sessionNumber;
    const number = clientSessionAfterResponse(own, said, this.#highestIntentSession);
    if (number !== own) this.runTransaction(() => this.#setSession(number));
  }

  /** The highest session number of stored puts, among the numbers that servers accept from any client. */
  get #highestIntentSession(): number {
    const sql = "SELECT max(session) AS session FROM intents WHERE session <= ?";
    return Number(this.#file.get(sql, unrestrictedClientNumberMax)?.["session"] ?? 0);
  }

  get #sessionNumber(): number {
    return Number(this.#readVerified(clientStateTables.client, "")[0]?.["session"]);
  }

  #setSession(session: number): void {
    this.#file.replace(clientStateTables.client, { only: 0, id: this.id, session });
  }

  subscriberPosition(topic: string): SubscriberPosition {
    const [row] = this.#readVerified(clientStateTables.places, "WHERE topic = ?", topic);
    return {
      cursor: Number(row?.["cursor"] ?? noMessageId),
      intent: Number(row?.["intent"] ?? noMessageId),
      folder: row === undefined || row["folder"] === null ? null : String(row["folder"]),
    };
  }

  setPosition(
    topic: string,
    { cursor, intent, folder }: SubscriberPosition,
    options?: { readonly durable?: boolean },
  ): void {
    this.runTransaction(() => this.#file.replace(clientStateTables.places, { topic, cursor, intent, folder }), options);
  }

  forgetPosition(topic: string): void {
    this.runTransaction(() => this.#file.run("DELETE FROM places WHERE topic = ?", topic));
  }

  /**
   * Adds the intents of one request. This method, `settleIntents`, `setInput` and `forgetInput` must be called inside
   * `runTransaction`.
   */
  addIntents({ topic, session, registration, counter, msgId, bodies }: UnresolvedPutRequest): void {
    const { lengths, bytes } = joinBodies(bodies);
    this.#file.replace(clientStateTables.intents, {
      id: this.#nextIntentId++,
      topic,
      registration,
      session: session.number,
      key: session.key,
      counter,
      count: bodies.length,
      msg_id: msgId,
      lengths,
      bodies: bytes,
    });
  }

  /** Returns the topic's registration number, as this state knows it; 0 if it knows none. */
  knownRegistration(topic: string): number {
    const known = this.#registrations.get(topic);
    if (known !== undefined) return known;
    const number = Number(
      this.#readVerified(clientStateTables.registrations, "WHERE topic = ?", topic)[0]?.["number"] ?? 0,
    );
    this.#registrations.set(topic, number);
    return number;
  }

  observeRegistration(topic: string, number: number): void {
    this.runTransaction(() => this.#file.replace(clientStateTables.registrations, { topic, number }));
    this.#registrations.set(topic, number);
  }

  /** Deletes the intents of the requests with counters from `first` to `last`: their outcome is now known. */
  settleIntents(
    { topic, session }: Pick<UnresolvedPutRequest, "topic" | "session">,
    { first, last }: { readonly first: number; readonly last: number },
  ): void {
    this.#file.run(
      "DELETE FROM intents WHERE topic = ? AND session = ? AND key = ? AND counter BETWEEN ? AND ?",
      topic,
      session.number,
      session.key,
      first,
      last,
    );
  }

  /** Returns the intents of a topic, in the order in which they were added. */
  putIntents(topic: string): UnresolvedPutRequest[] {
    return this.#readVerified(clientStateTables.intents, "WHERE topic = ? ORDER BY id", topic).map((row) => ({
      topic: String(row["topic"]),
      session: { number: Number(row["session"]), key: String(row["key"]) },
      registration: Number(row["registration"]),
      counter: Number(row["counter"]),
      msgId: row["msg_id"] === null ? null : String(row["msg_id"]),
      bodies: this.#bodiesOf(row),
    }));
  }

  #bodiesOf(row: Record<string, unknown>): Uint8Array[] {
    try {
      return splitBodies({ lengths: row["lengths"] as Uint8Array | null, bytes: row["bodies"] as Uint8Array });
    } catch (cause) {
      throw new BatonError(
        "IO",
        `The state of client "${this.id}" at ${this.path} is damaged: ${errorMessage(cause)}`,
        {
          cause,
        },
      );
    }
  }

  countIntents(topic: string): number {
    return Number(this.#file.get("SELECT sum(count) AS count FROM intents WHERE topic = ?", topic)?.["count"] ?? 0);
  }

  inputPosition(topic: string, name: string): PutInputProgress | null {
    const [row] = this.#readVerified(clientStateTables.inputs, "WHERE topic = ? AND name = ?", topic, name);
    if (row === undefined) return null;
    const [digest = "", ...file] = String(row["digest"]).split(" ");
    const mark = file.length === 0 ? {} : { file: JSON.parse(file.join(" ")) };
    return { name, taken: Number(row["taken"]), digest, ...mark };
  }

  setInput(topic: string, { name, taken, digest, file }: PutInputProgress): void {
    // The format has no column for the file.
    const stored = file === undefined ? digest : `${digest} ${JSON.stringify(file)}`;
    this.#file.replace(clientStateTables.inputs, { topic, name, taken, digest: stored });
  }

  forgetInput(topic: string, name: string): void {
    this.#file.run("DELETE FROM inputs WHERE topic = ? AND name = ?", topic, name);
  }

  /** Deletes inputs above the limit, starting with those that were not used for the longest time. */
  trimInputs(topic: string): void {
    const { count } = this.#file.get("SELECT count(*) AS count FROM inputs WHERE topic = ?", topic) ?? {};
    if (Number(count) <= inputsMax) return;
    const sql = "DELETE FROM inputs WHERE rowid IN (SELECT rowid FROM inputs WHERE topic = ? ORDER BY rowid LIMIT ?)";
    this.runTransaction(() => this.#file.run(sql, topic, Number(count) - inputsMax));
  }

  /**
   * Runs `work` in one transaction. The stored changes survive a kill; if `durable` is true (the default), they also
   * survive a power failure. Throws IO.
   */
  runTransaction(work: () => void, { durable = true }: { readonly durable?: boolean } = {}): void {
    try {
      if (durable !== this.#isDurable) {
        this.#file.database.exec(`PRAGMA synchronous = ${durable ? "FULL" : "NORMAL"}`);
      }
      this.#isDurable = durable;
      this.#file.transaction(work);
    } catch (thrown) {
      throw new BatonError(
        "IO",
        `Cannot write the state of client "${this.id}" at ${this.path}: ${errorMessage(thrown)}`,
        {
          cause: thrown,
        },
      );
    }
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }

  /**
   * Reads rows and verifies their checksums. Throws IO for a damaged row, because a wrong position could skip messages.
   */
  #readVerified(table: ChecksumTable<string>, condition: string, ...values: (number | string)[]): SqlRow[] {
    const where = `The state of client "${this.id}" at ${this.path} is damaged`;
    try {
      const sql = `SELECT ${table.allColumns} FROM ${table.name} ${condition}`;
      const rows = this.#file.all(sql, ...values);
      if (rows.every((row) => table.isIntact(row))) return rows;
    } catch (cause) {
      if (!isSqliteDamageError(cause)) throw cause;
      throw new BatonError("IO", `${where}: ${errorMessage(cause)}${damageAdvice} ${this.path}`, { cause });
    }
    throw new BatonError("IO", `${where} in its ${table.name}${damageAdvice} ${this.path}`);
  }
}

/**
 * Returns the reason why a write failed, as the end of a sentence; empty if none is found. SQLite itself does not
 * report the reason.
 */
function writeFailureReason(path: string): string {
  try {
    accessSync(dirname(path), constants.W_OK);
    closeSync(openSync(path, "r+"));
    return "";
  } catch (thrown) {
    return `; ${errorMessage(thrown)}`;
  }
}

export function clientStateFilePath(folder: string, id: string): string {
  return join(folder, `${sha256Hex(id)}.sqlite`);
}

/** Describes the process that uses the state, for a message. */
function describeUser(folder: string, id: string): string {
  const pid = findFileLockHolder(clientStateFilePath(folder, id));
  return `client ID ${JSON.stringify(id)}: ${pid === null ? "another process" : `process ${pid}`} is using it`;
}

function stateError(thrown: unknown, folder: string, id: string): BatonError {
  if (thrown instanceof BatonError) return thrown;
  const why = errorMessage(thrown);
  const path = clientStateFilePath(folder, id);
  const isDamaged = /not a database|malformed/.test(why);
  const advice = isDamaged
    ? `${damageAdvice} ${path}`
    : /unable to open|disk I\/O|readonly/.test(why)
    ? writeFailureReason(path)
    : "";
  return new BatonError("IO", `Cannot open the state of client "${id}" at ${path}: ${why}${advice}`, { cause: thrown });
}

/** The file's format, in `PRAGMA user_version`. Development versions wrote 1 to 4. */
const storedFormat = 5;
/** The value of `PRAGMA application_id`, which is the text "btPC". */
const applicationId = 0x62745043;

export const clientStateTables = {
  client: defineChecksumTable("client", ["only", "id", "session"]),
  places: defineChecksumTable("places", ["topic", "cursor", "intent", "folder"]),
  registrations: defineChecksumTable("registrations", ["topic", "number"]),
  intents: defineChecksumTable("intents", [
    "id",
    "topic",
    "registration",
    "session",
    "key",
    "counter",
    "count",
    "msg_id",
    "lengths",
    "bodies",
  ]),
  inputs: defineChecksumTable("inputs", ["topic", "name", "taken", "digest"]),
} as const;

const schema = `
  CREATE TABLE IF NOT EXISTS client (only INTEGER PRIMARY KEY, id TEXT NOT NULL, session INTEGER NOT NULL,
    sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS places (topic TEXT PRIMARY KEY, cursor INTEGER NOT NULL, intent INTEGER NOT NULL,
    folder TEXT, sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS registrations (topic TEXT PRIMARY KEY, number INTEGER NOT NULL, sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS intents (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, registration INTEGER NOT NULL,
    session INTEGER NOT NULL, key TEXT NOT NULL, counter INTEGER NOT NULL, count INTEGER NOT NULL, msg_id TEXT,
    sum INTEGER NOT NULL, lengths BLOB, bodies BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS inputs (topic TEXT NOT NULL, name TEXT NOT NULL, taken INTEGER NOT NULL,
    digest TEXT NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (topic, name));`;

interface JoinedBodies {
  /** Lengths of the messages, 32 bits each, big-endian; null if there is only one message. */
  readonly lengths: Uint8Array | null;
  readonly bytes: Uint8Array;
}

/**
 * Joins messages into one value, because one row per message would take ten times as long. Does not copy a single
 * message.
 */
function joinBodies(bodies: readonly Uint8Array[]): JoinedBodies {
  const [first] = bodies;
  if (first !== undefined && bodies.length === 1) return { lengths: null, bytes: first };
  const lengths = new ByteWriter(4 * bodies.length);
  for (const { byteLength } of bodies) lengths.i32(byteLength);
  return { lengths: lengths.finish(), bytes: joinBytes(bodies) };
}

/** Splits joined messages into views of `bytes`. Throws PROTOCOL if the lengths do not match. */
function splitBodies({ lengths, bytes }: JoinedBodies): Uint8Array[] {
  if (lengths === null) return [bytes];
  const reader = new ByteReader(lengths);
  const content = new ByteReader(bytes);
  const bodies: Uint8Array[] = [];
  while (reader.remaining > 0) bodies.push(content.view(reader.i32()));
  content.end();
  return bodies;
}
