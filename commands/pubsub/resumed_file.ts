/**
 * A file that another program appends to, and that is rotated from time to time: `put --lines --resume` reads it again
 * in each call. Finds the messages that are new, notices a rotation, and finds the file that has the old content.
 */
import type { Stats } from "node:fs";
import { type FileHandle, open, readdir, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { emptyInputDigest, extendInputDigest, wholeInputDigest } from "../../src/pubsub/client/input_checkpoints.ts";
import type { EarlierFile, NumberOrder, PutFileMark, PutInputProgress } from "../../src/pubsub/client/client_state.ts";
import { splitInputIntoMessages } from "../../src/pubsub/client/split_items.ts";
import { unreadableInputError } from "../input_files.ts";

const readBytes = 256 << 10;
/** How many messages at the start of a file are compared to tell a new file from a changed one. */
const startMessages = 8;
/** The length of a digest in a mark. */
const startDigestLength = 16;

export class ResumedFile implements AsyncDisposable {
  readonly path: string;
  readonly ino: number;
  readonly modifiedMs: number;
  readonly size: number;
  readonly #separator: number;
  readonly #handle: FileHandle;
  readonly #isGzip: boolean;
  /** The bytes after the last separator, once the file was read to its end. Another program may still add to them. */
  unfinished: Uint8Array | null = null;

  /** Rejects with IO if the file cannot be opened. */
  static async open(path: string, separator: number, isGzip = false): Promise<ResumedFile> {
    try {
      const handle = await open(path, "r");
      return new ResumedFile({ path, separator, handle, isGzip }, await handle.stat());
    } catch (thrown) {
      throw unreadableInputError(path, thrown);
    }
  }

  /** Resolves with null if there is no such file. Rejects with IO. */
  static async openIfPresent(path: string, separator: number): Promise<ResumedFile | null> {
    try {
      return await ResumedFile.open(path, separator);
    } catch (thrown) {
      if (((thrown as Error).cause as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw thrown;
    }
  }

  /** Opens a file that may be compressed by gzip. Rejects with IO. */
  static async openRotated(path: string, separator: number): Promise<ResumedFile> {
    return await ResumedFile.open(path, separator, extname(path) === ".gz");
  }

  private constructor(
    { path, separator, handle, isGzip }: {
      readonly path: string;
      readonly separator: number;
      readonly handle: FileHandle;
      readonly isGzip: boolean;
    },
    { ino, mtimeMs, size }: Stats,
  ) {
    this.path = path;
    this.#separator = separator;
    this.#handle = handle;
    this.#isGzip = isGzip;
    this.ino = ino;
    this.modifiedMs = mtimeMs;
    this.size = size;
  }

  /** Yields the complete messages, from the start of the file. */
  messages(): AsyncIterable<readonly Uint8Array[]> {
    this.unfinished = null;
    return splitInputIntoMessages(this.#content(), this.#separator, (bytes) => this.unfinished = bytes);
  }

  async *#content(): AsyncGenerator<Uint8Array, void, void> {
    try {
      if (!this.#isGzip) return yield* this.#chunks();
      const gunzip = createGunzip();
      pipeline(Readable.from(this.#chunks()), gunzip, () => {}); // the loop over `gunzip` gets the error
      yield* gunzip;
    } catch (thrown) {
      throw unreadableInputError(this.path, thrown);
    }
  }

  async *#chunks(): AsyncGenerator<Uint8Array, void, void> {
    for (let at = 0;;) {
      const { bytesRead, buffer } = await this.#handle.read(Buffer.allocUnsafe(readBytes), 0, readBytes, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

/** How a file that does not continue the one of which messages were put compares with it. */
export interface FileComparison {
  readonly ino: number;
  readonly isEmpty: boolean;
  /** True if the file has at least one complete message. */
  readonly hasMessages: boolean;
  /** True if the file begins as the old one did. The first messages of both are compared. */
  readonly startsAlike: boolean;
  /** True if the file contains the last message that was put. */
  readonly hasLast: boolean;
}

export type ReplacedFileDecision =
  /** None of the messages in the file were put. */
  | "new"
  /** The file has no messages yet. */
  | "no messages yet"
  /** Some of the messages may have been put, others not. */
  | "unclear";

/** Decides what is in a file that is not the one of which messages were put. `old` is that file, if it was found. */
export function decideReplacedFile(
  { taken, file: mark }: PutInputProgress,
  now: FileComparison,
  old: Pick<OldFile, "isRotation"> | null,
): ReplacedFileDecision {
  if (now.isEmpty && old === null) return "new";
  if (!now.hasMessages) return "no messages yet";
  if (mark === undefined) return "unclear";
  if (taken === 0 || mark.emptyIno === now.ino || old?.isRotation === true) return "new";
  return now.startsAlike || now.hasLast ? "unclear" : "new";
}

/**
 * Resolves with the messages that were not put, as they are read; with null if the file does not begin with those that
 * were put.
 */
export async function readUnsentMessages(
  file: Pick<ResumedFile, "messages" | "unfinished">,
  { taken, digest }: Pick<PutInputProgress, "taken" | "digest">,
  { starts = [], onSkipped = () => {} }: {
    /** Gets the short digests of the start of the file. */
    readonly starts?: string[];
    readonly onSkipped?: (messages: number, bytes: number) => void;
  } = {},
): Promise<AsyncIterable<readonly Uint8Array[]> | null> {
  const messages = withStarts(file.messages(), starts)[Symbol.asyncIterator]();
  let skipped = 0;
  let bytes = 0;
  let found = emptyInputDigest;
  const skip = (items: readonly Uint8Array[]) => {
    for (const item of items) {
      found = extendInputDigest(found, item);
      bytes += item.byteLength;
    }
    skipped += items.length;
  };
  let first: readonly Uint8Array[] = [];
  while (skipped < taken) {
    const { done, value: chunk } = await messages.next();
    if (done === true) break;
    first = chunk.slice(taken - skipped);
    skip(chunk.slice(0, taken - skipped));
  }
  if (skipped === taken - 1 && file.unfinished !== null) {
    // A call without --resume has also put the last line, which had no newline.
    skip([file.unfinished]);
    file.unfinished = null;
  }
  if (skipped < taken || wholeInputDigest(found) !== wholeInputDigest(digest)) return null;
  onSkipped(skipped, bytes);
  return (async function* () {
    if (first.length > 0) yield first;
    yield* { [Symbol.asyncIterator]: () => messages };
  })();
}

/** Passes messages on, and adds the short digests of the first ones to `starts`. */
async function* withStarts(
  chunks: AsyncIterable<readonly Uint8Array[]>,
  starts: string[],
): AsyncGenerator<readonly Uint8Array[], void, void> {
  let start = emptyInputDigest;
  for await (const chunk of chunks) {
    for (const item of chunk.slice(0, startMessages - starts.length)) {
      start = extendInputDigest(start, item);
      starts.push(wholeInputDigest(start).slice(0, startDigestLength));
    }
    yield chunk;
  }
}

/** Compares a file with what was put of the file that had its name. Reads it to its end. */
export async function compareResumedFile(
  file: ResumedFile,
  { digest, file: mark }: PutInputProgress,
): Promise<FileComparison> {
  const starts: string[] = [];
  let hasLast = false;
  const beforeLast = digest.slice(0, -wholeInputDigest(digest).length);
  for await (const chunk of withStarts(file.messages(), starts)) {
    for (const item of chunk) {
      hasLast ||= wholeInputDigest(extendInputDigest(beforeLast, item)) === wholeInputDigest(digest);
    }
  }
  const compared = Math.min(starts.length, mark?.starts.length ?? 0);
  const startsAlike = compared > 0 && starts[compared - 1] === mark?.starts[compared - 1];
  return { ino: file.ino, isEmpty: file.size === 0, hasMessages: starts.length > 0, startsAlike, hasLast };
}

/** A rotated file. Most have the log's name with a number or a date, as in app.log.1 or app.log-20261129. */
export interface RotatedFile {
  readonly path: string;
  readonly ino: number;
  readonly modifiedMs: number;
  /** The size of the file as it is stored, in bytes. */
  readonly size: number;
}

/** The file that has the content of which messages were put. */
export interface OldFile extends FileBeside {
  /** False if the file is a copy. */
  readonly isRenamed: boolean;
  /** True if the file was renamed to a name that only a rotation gives: no editor does so with its backups. */
  readonly isRotation: boolean;
}

/** The files beside a log that had its name before, as far as messages of them may be missing. */
export interface RotatedFiles {
  readonly old: OldFile | null;
  /** The files that were the log after the old one, oldest first. */
  readonly newer: readonly RotatedFile[];
  /** Other rotated files that were written since. It is unknown whether their messages were put. */
  readonly doubtful: readonly RotatedFile[];
  /** The order of the numbers in the names; null if it is unknown. */
  readonly order: NumberOrder | null;
}

/**
 * Finds the old file in the folder of the file that has its name now, which has the inode `ino`. A file that was
 * renamed is found by its inode. A copy must be the only rotated file that was written after the messages were put, and
 * begins with them. A file that is unchanged since it had `quietSize` is not read again.
 */
export async function findRotatedFiles(
  { path, separator }: { readonly path: string; readonly separator: number },
  ino: number | null,
  place: PutInputProgress,
  { quietSize = null, known = new Set() }: {
    readonly quietSize?: number | null;
    /** The inodes of files that are neither new nor doubtful. */
    readonly known?: ReadonlySet<number>;
  } = {},
): Promise<RotatedFiles> {
  const { file: mark, taken } = place;
  if (mark === undefined) return noRotatedFiles;
  const others = (await filesBeside(path)).filter((other) => other.ino !== ino);
  const renamed = others.filter((other) => other.ino === mark.ino);
  const written = others.filter((other) =>
    (other.isOfLog || other.isRotated) && wasWrittenSince(other, mark.modifiedMs)
  );
  const unknown = others.filter((other) => !known.has(other.ino) && !mark.earlier?.some(isSameFileAs(other)));
  for (const candidates of [renamed, taken === 0 ? [] : written]) {
    const found = [];
    for (const candidate of candidates) {
      const isOld = isUnchanged(candidate, mark, quietSize) || await beginsWith(candidate, separator, place);
      if (isOld) found.push(candidate);
    }
    const [old] = found;
    if (old === undefined || found.some(({ ino }) => ino !== old.ino)) continue;
    const isRenamed = candidates === renamed;
    const isRotation = isRenamed && (old.isRotated || (old.rotation !== null && !isCount(old.rotation)));
    const order = mark.order ?? findNumberOrder(others, old, { earlier: mark.earlier, read: known });
    const { newer, doubtful } = sortRotatedFiles(unknown, old, mark.modifiedMs, order);
    const copies: RotatedFile[] = [];
    for (const file of taken > 0 && decompressor(old.path) === null ? newer : []) {
      // A program may have compressed the old file and kept it.
      if (extname(file.path) === ".gz" && await beginsWith(file, separator, place)) copies.push(file);
    }
    return {
      old: { ...old, isRenamed, isRotation },
      newer: newer.filter((file) => !copies.includes(file)),
      doubtful: [...doubtful, ...copies],
      order,
    };
  }
  return { old: null, ...sortRotatedFiles(unknown, null, mark.modifiedMs, null), order: null };
}

export const noRotatedFiles: RotatedFiles = { old: null, newer: [], doubtful: [], order: null };

/** How many numbered files a mark names. */
const earlierFilesMax = 8;

/**
 * Lists the newest numbered files beside a log. If the log is opened afterwards, they were rotated before it was the
 * log. Resolves with undefined if the folder cannot be read.
 */
export async function listEarlierFiles(path: string): Promise<readonly EarlierFile[] | undefined> {
  try {
    const files = (await filesBeside(path)).toSorted((a, b) => b.modifiedMs - a.modifiedMs);
    return files.flatMap(earlierFile).slice(0, earlierFilesMax);
  } catch {
    return undefined;
  }
}

/** Adds a file to the older ones if it has a number. */
export function addEarlierFile(
  files: readonly EarlierFile[] | undefined,
  file: OldFile,
): readonly EarlierFile[] | undefined {
  return files && [...earlierFile(file), ...files.filter(({ ino }) => ino !== file.ino)].slice(0, earlierFilesMax);
}

/** Returns what a mark needs to know of a numbered file; nothing for other files. */
function earlierFile(file: FileBeside): EarlierFile[] {
  const { ino, bornMs, modifiedMs, size } = file;
  const number = numberOf(file);
  return number === null ? [] : [{ number, ino, bornMs, modifiedMs, size }];
}

/** The inode alone does not identify a file: a new file may get the one of a deleted file. */
function isSameFileAs(file: FileBeside): (other: EarlierFile) => boolean {
  return ({ ino, bornMs, modifiedMs, size }) =>
    ino === file.ino && bornMs === file.bornMs && modifiedMs === file.modifiedMs && size === file.size;
}

/** Returns the number of a file such as app.log.1; null for other files. */
function numberOf({ rotation, isOfLog }: RotatedName): number | null {
  return isOfLog && rotation !== null && isCount(rotation) && /^\d+$/.test(rotation) ? Number(rotation) : null;
}

/**
 * Decides which file has the highest number: the oldest or the newest one. `earlier` are files that are older than the
 * old one, with the numbers that they had before its rotation. Returns null if the files do not show it.
 */
export function findNumberOrder(
  others: readonly FileBeside[],
  old: FileBeside,
  { earlier, read = new Set() }: {
    readonly earlier: readonly EarlierFile[] | undefined;
    /** The inodes of files that this call has found to be the same, although they may have late lines. */
    readonly read?: ReadonlySet<number>;
  },
): NumberOrder | null {
  const oldNumber = numberOf(old);
  if (oldNumber === null || earlier === undefined) return null;
  const known = earlier.filter(({ ino }) => ino !== old.ino).toSorted((a, b) => a.number - b.number);
  const steps = known.flatMap((before) => {
    const found = others.find((file) => isSameFileAs(file)(before) || (file.ino === before.ino && read.has(file.ino)));
    const number = found === undefined ? null : numberOf(found);
    return number === null ? [] : [number - before.number];
  });
  const [firstStep] = steps;
  if (firstStep !== undefined) {
    // A rotation that renames its files may leave some with higher numbers than it gives.
    if (firstStep > 0) return "down";
    return steps.every((step) => step <= 0) ? "up" : null;
  }
  // The old file is newer than each of these.
  if (known.length > 0) return oldNumber <= Math.max(...known.map(({ number }) => number)) ? "down" : null;
  // There was no numbered file before the old one, so each of the others is newer.
  const numbers = others.filter(({ ino }) => ino !== old.ino).flatMap((file) => numberOf(file) ?? []);
  if (numbers.every((number) => number < oldNumber)) return "down";
  return numbers.every((number) => number > oldNumber) ? "up" : null;
}

function wasWrittenSince({ path, modifiedMs }: RotatedFile, sinceMs: number): boolean {
  // Some programs that compress a file keep only the seconds of its time.
  const lostMs = decompressor(path) === null ? 0 : sinceMs % 1000;
  return modifiedMs >= sinceMs - lostMs;
}

/** Returns true if a file is still as it was when it had this size and was found to have nothing new. */
export function isUnchanged(file: RotatedFile, mark: PutFileMark, quietSize: number | null): boolean {
  return file.size === quietSize && file.ino === mark.ino && file.modifiedMs === mark.modifiedMs;
}

/** The parts of a file's name that tell of its rotation. */
export interface RotatedName {
  /** The number, the date or the time stamp in the name; null if there is none. */
  readonly rotation: string | null;
  /** The name with `#` for each number. Files of one log that are rotated in the same way have the same one. */
  readonly scheme: string;
  /** True if the name is the log's with an end, as in app.log.bak. */
  readonly isOfLog: boolean;
  /** True if the name is the log's with a number or a date at its end, or with a date before .log. */
  readonly isRotated: boolean;
}

export interface FileBeside extends RotatedFile, RotatedName {
  /** When the file was last written or renamed, or its time was set. */
  readonly changedMs: number;
  /** When the file was made; some file systems do not tell. */
  readonly bornMs: number;
}

/**
 * Decides which rotated files were the log after the old one, which had the log's name until after `sinceMs`, a time.
 * The names and the times must say the same, because a late line changes the time of a file, and some programs set it
 * back or compress a file late. Files that changed before then are of no interest. A numbered file is newer only if the
 * order of the numbers is known.
 */
export function sortRotatedFiles(
  others: readonly FileBeside[],
  old: FileBeside | null,
  sinceMs: number,
  order: NumberOrder | null,
): Pick<RotatedFiles, "newer" | "doubtful"> {
  const isSameScheme = (file: FileBeside) => old !== null && old.rotation !== null && file.scheme === old.scheme;
  const rotated = others.filter((file) =>
    file.ino !== old?.ino && (isSameScheme(file) || (file.isRotated && (file.isOfLog || old === null)))
  ).toSorted((a, b) => compareAge(a, b, order ?? "down"));
  const isCounted = ({ rotation }: FileBeside) => rotation !== null && isCount(rotation);
  const isUnordered = (file: FileBeside) => isCounted(file) && (order === null || !file.isOfLog);
  const orders: NumberOrder[] = order === null ? ["down", "up"] : [order];
  const isNewer = (file: FileBeside) => old !== null && orders.some((either) => compareAge(file, old, either) > 0);
  // A file of the same time may have been written before. Compressing one can cut its time to seconds.
  const isSure = (file: FileBeside) =>
    isNewer(file) && !isUnordered(file) && wasWrittenSince(file, sinceMs) &&
    (file.modifiedMs > sinceMs || decompressor(file.path) !== null);
  // Where the newest file has the highest number, an older one may be compressed now.
  const isChanged = (file: FileBeside) =>
    wasWrittenSince(file, sinceMs) ||
    (file.changedMs > sinceMs && (!isCounted(file) || decompressor(file.path) === null));
  const isDoubtful = (file: FileBeside) =>
    !isSure(file) && (isNewer(file) ? isChanged(file) : file.modifiedMs > (old?.modifiedMs ?? sinceMs));
  return { newer: rotated.filter(isSure), doubtful: rotated.filter(isDoubtful) };
}

/** Returns a positive number if `a` was the log after `b`, by their names if both have a number or a date. */
function compareAge(a: FileBeside, b: FileBeside, numbers: NumberOrder): number {
  const { rotation: first } = a;
  const { rotation: second } = b;
  const isComparable = a.scheme === b.scheme || (a.isRotated && b.isRotated);
  if (first === null || second === null || !isComparable || isCount(first) !== isCount(second)) {
    return a.modifiedMs - b.modifiedMs;
  }
  // Hexadecimal time stamps have one length.
  const order = first.length === second.length
    ? Number(first > second) - Number(first < second)
    : first.localeCompare(second, "en", { numeric: true });
  return isCount(first) && numbers === "down" ? -order : order;
}

/** Returns true for a number that counts files, false for a date or a time stamp. */
function isCount(rotation: string): boolean {
  return rotation.length <= rotationCountDigits;
}

/** A number with more digits is a date. One with fewer counts files. */
const rotationCountDigits = 3;

const decompressors = new Map([
  ["gz", "zcat"],
  ["Z", "zcat"],
  ["bz2", "bzip2 -dc"],
  ["xz", "xz -dc"],
  ["zst", "zstd -dc"],
  ["lz4", "lz4 -dc"],
]);

/** Returns true if this program can read the content: the file is not compressed, or by gzip. */
export function isReadable({ path }: RotatedFile): boolean {
  return extname(path) === ".gz" || decompressor(path) === null;
}

/** Returns the command that prints the content of a compressed file; null for other files. */
export function decompressor(path: string): string | null {
  return decompressors.get(extname(path).slice(1)) ?? null;
}

const aNumber = /[0-9a-f]{8,}|[0-9]+/g;

/** Reads the name of a file beside a log that has these names: its own one, and that of the file that it links to. */
export function readRotatedName(name: string, logNames: readonly string[]): RotatedName {
  const plain = decompressor(name) === null ? name : name.slice(0, -extname(name).length);
  const starts = logNames.flatMap((log) => [
    { start: log, isOfLog: true, end: "" },
    { start: log.slice(0, log.length - extname(log).length), isOfLog: false, end: extname(log) },
  ]).filter(({ start }) => plain.startsWith(start)).toSorted((a, b) => b.start.length - a.start.length);
  const { start, isOfLog, end } = starts[0] ?? { start: "", isOfLog: false, end: "" };
  const rest = plain.slice(start.length);
  const numbers = [...rest.matchAll(aNumber)];
  const first = numbers.at(0);
  const last = numbers.at(-1);
  const rotation = first && last ? rest.slice(first.index, last.index + last[0].length) : null;
  const isNumber = rest.endsWith(end) && /^[.-]\d[\d.:TZ_+-]*$/.test(rest.slice(0, rest.length - end.length));
  return {
    rotation,
    scheme: start + rest.replaceAll(aNumber, "#"),
    isOfLog: isOfLog && /^[.-]/.test(rest),
    // A small number before .log may be that of another program.
    isRotated: isNumber && start !== "" && (isOfLog || (rotation?.length ?? 0) >= dateDigits),
  };
}

/** The digits of a short date. */
const dateDigits = 6;

/** Lists the files in the folder of a log. Leaves out a file that is being compressed: the original is still there. */
async function filesBeside(path: string): Promise<FileBeside[]> {
  const target = await linkedFile(path);
  const folder = dirname(target);
  const own = [basename(target), basename(path)];
  const files: FileBeside[] = [];
  const names = new Set(await readdir(folder));
  for (const name of names) {
    const found = await stat(join(folder, name)).catch(() => null); // it may just have been removed
    const isPart = decompressor(name) !== null && names.has(name.slice(0, -extname(name).length));
    if (own.includes(name) || !found?.isFile() || isPart) continue;
    const { ino, mtimeMs: modifiedMs, ctimeMs: changedMs, birthtimeMs: bornMs, size } = found;
    const times = { modifiedMs, changedMs, bornMs };
    files.push({ path: join(folder, name), ino, size, ...times, ...readRotatedName(name, own) });
  }
  return files;
}

/** Returns the path of the file that a symbolic link names, which may not be there yet; other paths as they are. */
async function linkedFile(path: string): Promise<string> {
  const target = await readlink(path).catch(() => null);
  if (target === null) return path;
  return await realpath(path).catch(() => resolve(dirname(path), target));
}

/** Throws IO if the file that was renamed cannot be read. Any other file that cannot be read is not the old one. */
async function beginsWith({ path, ino }: RotatedFile, separator: number, place: PutInputProgress): Promise<boolean> {
  try {
    await using file = await ResumedFile.openRotated(path, separator);
    return (await readUnsentMessages(file, place)) !== null;
  } catch (thrown) {
    if (ino === place.file?.ino) throw thrown;
    return false;
  }
}
