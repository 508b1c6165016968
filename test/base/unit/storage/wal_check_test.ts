/**
 * The check of a log that another process writes meanwhile. SQLite makes the logs. What it changed is played again in
 * small steps, in the order in which SQLite writes, between the pieces of which the reads of the check consist.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { findWalDamage, type ReadFileStart } from "../../../../src/base/storage/wal_check.ts";
import { seededRandom, testSeed } from "../../../support/random.ts";

setDefaultTimeout(60_000);

const seed = testSeed();
const database = "x.sqlite";
const log = `${database}-wal`;
const index = `${database}-shm`;
const headerBytes = 32;
/** Small ones: more frames in fewer bytes. */
const pageBytes = 512;
const frameBytes = 24 + pageBytes;
const indexCopyBytes = 48;

type Step = { readonly file: string; readonly at: number; readonly bytes: Uint8Array } | { readonly cutTo: number };

/** A moment at which no transaction was open: `steps` lead to it. */
interface Moment {
  readonly steps: number;
  /** The last frame of each commit in the log as it was begun last. */
  readonly commits: readonly number[];
  /** How many times the log was begun. */
  readonly begun: number;
}

/** Transactions of all kinds, logs begun again and cut off, one that is rolled back after frames of it were written. */
function recorded(random: () => number): { readonly steps: Step[]; readonly moments: Moment[]; readonly start: Files } {
  const folder = newFolder();
  try {
    const path = join(folder, database);
    using sqlite = new DatabaseSync(path);
    sqlite.exec(`PRAGMA page_size = ${pageBytes}; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0`);
    sqlite.exec("PRAGMA journal_size_limit = 12000");
    sqlite.exec("PRAGMA cache_size = 5; CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)");
    const put = sqlite.prepare("INSERT OR REPLACE INTO t VALUES (?, ?)");
    const putSome = (rows: number) => {
      for (let row = 0; row < rows; row++) {
        put.run(Math.floor(random() * 40), new Uint8Array(random() * 1100).fill(random() * 256));
      }
    };
    const now = (): Files =>
      new Map([database, log, index].map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))]));
    const start = now();
    const steps: Step[] = [];
    const moments: Moment[] = [];
    let before = start;
    for (let round = 0; round < 60; round++) {
      const kind = random();
      if (kind < 0.07) sqlite.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      else if (kind < 0.2) sqlite.exec("PRAGMA wal_checkpoint(PASSIVE)"); // the next transaction begins the log again
      else {
        sqlite.exec("BEGIN IMMEDIATE");
        putSome(1 + Math.floor(random() * (kind < 0.4 ? 12 : 3)));
        sqlite.exec(kind < 0.3 ? "ROLLBACK" : "COMMIT");
      }
      const after = now();
      steps.push(...stepsBetween(before, after, random));
      const isSameLog = Buffer.compare(headOf(before), headOf(after)) === 0;
      const { commits = [], begun = 0 } = moments.at(-1) ?? {};
      const stored = storedFrames(after);
      const isNew = stored > (isSameLog ? commits.at(-1) ?? 0 : 0);
      moments.push({
        steps: steps.length,
        commits: [...(isSameLog ? commits : []), ...(isNew ? [stored] : [])],
        begun: begun + (isSameLog ? 0 : 1),
      });
      before = after;
    }
    return { steps, moments, start };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type Files = Map<string, Uint8Array>;

function newFolder(): string {
  return mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "baton-log-"));
}

const bytesOf = (files: Files, name: string) => files.get(name) ?? new Uint8Array();
const headOf = (files: Files) => bytesOf(files, log).subarray(0, headerBytes);

/**
 * What the index says, where it is of this log: a log that was begun again has another one only with its first frames.
 */
function storedFrames(files: Files): number {
  const head = headOf(files);
  const view = Buffer.from(bytesOf(files, index));
  if (head.byteLength < headerBytes || Buffer.compare(head.subarray(16, 24), view.subarray(32, 40)) !== 0) return 0;
  return view.readUInt32LE(16);
}

/** The log's header, its frames and then the index; where the log is cut off, the index first. */
function stepsBetween(before: Files, after: Files, random: () => number): Step[] {
  const old = bytesOf(before, log);
  const now = bytesOf(after, log);
  const ranges: [from: number, to: number][] = [[0, headerBytes]];
  for (let at = headerBytes; at < now.byteLength; at += frameBytes) {
    ranges.push([at, at + 24], [at + 24, at + frameBytes]);
  }
  const written = ranges.filter(([from, to]) => Buffer.compare(old.subarray(from, to), now.subarray(from, to)) !== 0)
    .flatMap(([from, to]) =>
      pieces(log, now, { from, to, longest: to === headerBytes ? 32 : to - from === 24 ? 8 : 256 }, random)
    );
  const oldIndex = bytesOf(before, index);
  const indexed = [indexCopyBytes, 0].filter((from) => {
    const to = from + indexCopyBytes;
    return Buffer.compare(oldIndex.subarray(from, to), bytesOf(after, index).subarray(from, to)) !== 0;
  }).flatMap((from) => pieces(index, bytesOf(after, index), { from, to: from + indexCopyBytes, longest: 16 }, random));
  const cut = now.byteLength < old.byteLength ? [{ cutTo: now.byteLength }] : [];
  return now.byteLength === 0 ? [...indexed, ...cut] : [...written, ...cut, ...indexed];
}

function pieces(
  file: string,
  now: Uint8Array,
  { from, to, longest }: { readonly from: number; readonly to: number; readonly longest: number },
  random: () => number,
): Step[] {
  const steps: Step[] = [];
  for (let at = from; at < to;) {
    const end = Math.min(
      to,
      now.byteLength,
      longest <= headerBytes ? at + longest : at + 8 + Math.floor(random() * longest),
    );
    if (end === at) break;
    steps.push({ file, at, bytes: now.slice(at, end) });
    at = end;
  }
  return steps;
}

/** The files at a step; a read takes pieces of them between which the writer may go on. */
class PlayedWriter {
  readonly #files: Map<string, { readonly bytes: Uint8Array; size: number }>;
  readonly #steps: readonly Step[];
  #next = 0;
  readonly #end: number;

  /** `end`: the writer stops there. */
  constructor(
    { steps, start }: { readonly steps: readonly Step[]; readonly start: Files },
    first: number,
    end = Infinity,
  ) {
    this.#files = new Map([...start].map(([name, bytes]) => {
      const longer = new Uint8Array(Math.max(bytes.byteLength, ...steps.map((step) => endOf(step, name))));
      longer.set(bytes);
      return [name, { bytes: longer, size: bytes.byteLength }];
    }));
    this.#steps = steps;
    this.#end = Math.min(end, steps.length);
    this.advance(first);
  }

  advance(count: number): void {
    for (const end = Math.min(this.#end, this.#next + count); this.#next < end; this.#next++) {
      const step = this.#steps[this.#next] as Step;
      if ("cutTo" in step) this.#file(log).size = step.cutTo;
      else {
        const file = this.#file(step.file);
        file.bytes.set(step.bytes, step.at);
        file.size = Math.max(file.size, endOf(step, step.file));
      }
    }
  }

  flip(name: string, bit: number): void {
    const { bytes } = this.#file(name);
    bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
  }

  /** Reads beside the writer. It goes on by one step at least for each read. */
  reader(random: () => number): ReadFileStart {
    return (path, bytesMax) => {
      const file = this.#files.get(basename(path));
      if (file === undefined) return null;
      const bytes = new Uint8Array(Math.min(file.size, bytesMax));
      const longest = 8 << Math.floor(random() * 10);
      for (let at = 0; at < bytes.byteLength; at += longest) {
        const chance = random();
        if (at === 0) this.advance(1);
        else if (chance > 0.97) this.advance(Math.ceil(random() * 300));
        else if (chance > 0.7) this.advance(Math.ceil(random() * 6));
        const end = Math.min(at + longest, bytes.byteLength, file.size);
        if (end <= at) return bytes.subarray(0, at); // cut off meanwhile
        bytes.set(file.bytes.subarray(at, end), at);
      }
      return bytes;
    };
  }

  /** Reads while the writer stands still. */
  get still(): ReadFileStart {
    return (path, bytesMax) => {
      const file = this.#files.get(basename(path));
      return file === undefined ? null : file.bytes.slice(0, Math.min(file.size, bytesMax));
    };
  }

  #file(name: string): { readonly bytes: Uint8Array; size: number } {
    return this.#files.get(name) ?? { bytes: new Uint8Array(), size: 0 };
  }
}

function endOf(step: Step, name: string): number {
  return "cutTo" in step || step.file !== name ? 0 : step.at + step.bytes.byteLength;
}

test(`a log that is written while it is read is not taken for damaged [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);
  const recording = recorded(random);
  for (let round = 0; round < 600; round++) {
    const first = Math.floor(random() * recording.steps.length);
    const writer = new PlayedWriter(recording, first);
    expect([round, first, findWalDamage(database, writer.reader(random))]).toEqual([round, first, null]);
  }
});

test(`nor is one whose writer was stopped or killed, at any step [BATON_SEED=${seed}]`, () => {
  const recording = recorded(seededRandom(seed));
  const writer = new PlayedWriter(recording, 0);
  for (let step = 0; step < recording.steps.length; step++) {
    writer.advance(1);
    expect([step, findWalDamage(database, writer.still)]).toEqual([step, null]);
  }
});

test(`damage is found while the log is written: by its index, or by what was stored later [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);
  const recording = recorded(random);
  let found = 0;
  for (const [at, { steps, commits, begun }] of recording.moments.entries()) {
    const begunAgain = recording.moments.slice(at).find((later) => later.begun > begun);
    const end = begunAgain === undefined
      ? recording.steps.length
      : (recording.moments[recording.moments.indexOf(begunAgain) - 1] as Moment).steps;
    for (const known of ["by the index", "by its second copy", "by later frames"]) {
      const frames = commits.at(known === "by later frames" ? -3 : -1);
      if (frames === undefined) continue;
      for (let flip = 0; flip < 8; flip++) {
        const writer = new PlayedWriter(recording, steps, end);
        const bit = 8 * headerBytes + Math.floor(random() * 8 * frameBytes * frames);
        writer.flip(log, bit);
        const read = writer.reader(random);
        if (known === "by its second copy") writer.flip(index, Math.floor(random() * 8 * indexCopyBytes));
        const isHidden = (path: string) => path === index && known === "by later frames";
        const damage = findWalDamage(database, (path, max) => isHidden(path) ? null : read(path, max));
        const frame = 1 + Math.floor((bit / 8 - headerBytes) / frameBytes);
        const sentence = expect.stringContaining(`the log is damaged in frame ${frame}`);
        expect([at, known, bit, damage]).toEqual([at, known, bit, sentence]);
        found++;
      }
    }
  }
  expect(found).toBeGreaterThan(100);
});

test("a damaged header is found", () => {
  const recording = recorded(seededRandom(seed));
  const { steps } = recording.moments.find(({ commits }) => commits.length > 0) as Moment;
  for (const bit of [3, 8 * 9, 8 * 17 + 5, 8 * 31 + 7]) {
    const writer = new PlayedWriter(recording, steps);
    writer.flip(log, bit);
    expect(findWalDamage(database, writer.still)).toContain("the log's header is damaged");
  }
});

test("a log that comes and goes, with processes that open and close the database, is no failure", async () => {
  const folder = newFolder();
  const path = join(folder, database);
  const program = `const { rmSync, writeFileSync } = require("node:fs"); const path = ${JSON.stringify(`${path}-wal`)};
    for (let round = 0; round < 5_000; round++) { writeFileSync(path, ""); rmSync(path); }`;
  const worker = new Worker(program, { eval: true });
  try {
    let isOver = false;
    worker.on("exit", () => isOver = true);
    while (!isOver) {
      for (let look = 0; look < 200; look++) expect(findWalDamage(path)).toBeNull();
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    await worker.terminate();
    rmSync(folder, { recursive: true });
  }
});
