/** Opens the inputs of `put` and `baton publish`: a text, a file, its lines, several files, or stdin as it arrives. */
import { createReadStream, existsSync, read, statSync } from "node:fs";
import { resolve } from "node:path";
import { wasStreamClosedAtStart } from "../../src/base/process/spawn/inherited_descriptors.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { PutInputProgress } from "../../src/pubsub/client/client_state.ts";
import {
  emptyInputDigest,
  extendInputDigest,
  type PutFilesCheckpoint,
} from "../../src/pubsub/client/input_checkpoints.ts";
import { messageBytesMax } from "../../src/pubsub/client/client_limits.ts";
import { splitInputIntoMessages } from "../../src/pubsub/client/split_items.ts";
import { requireInputFile, unreadableInputError } from "../input_files.ts";
import type { PubsubClientCall } from "./client_options.ts";

export type ClientPutInput = MessageSequence | MessageFiles;

/** Messages that follow each other in one file or stream. */
export interface MessageSequence extends PutSource {
  readonly kind: "sequence";
  /** Identifies the input. */
  readonly name: string;
  /** The regular file that contains the messages, and the byte that separates them; null for other inputs. */
  readonly file: { readonly path: string; readonly separator: number } | null;
  /** True if the input is a stream, which cannot be read again from its start: everything that arrives is new. */
  readonly isStream: boolean;
}

interface MessageFiles extends PutSource {
  readonly kind: "files";
  readonly isStream: false;
  readonly files: readonly WholeFile[];
}

interface PutSource {
  readonly source: string;
  /** True if there may be several messages. Then progress and the number of messages are worth a report. */
  readonly isBulk: boolean;
  /** Returns the total number of bytes; null if unknown. Called only if progress is shown. */
  totalBytes(): number | null;
  /** The size of the separator after each message, in bytes. */
  readonly separatorBytes: number;
  read(): AsyncIterable<readonly Uint8Array[]>;
}

interface WholeFile {
  /** The path of the file; null for stdin. */
  readonly path: string | null;
  /** The name that identifies the input. A file that is listed twice has two names. */
  readonly name: string;
}

const textAdvice = "to put a text and not a file: baton publish TOPIC TEXT";
const newline = 10;
const readBytes = 256 << 10;
/** How many bytes a pipe holds. */
const stdinBytes = 64 << 10;
/** How long to wait between two reads if another program made stdin non-blocking, in milliseconds. */
const emptyMs = 10;

/**
 * Opens the input of `put`; null if only earlier puts are to be sent again. Throws USAGE, or IO for a file that cannot
 * be read.
 */
export function openPutInput({ values, io }: PubsubClientCall, paths: readonly string[]): ClientPutInput | null {
  const { lines, files, msgId, resume } = values;
  const ways = [lines, values.null, files].filter(Boolean).length;
  if (ways > 1) throw new BatonError("USAGE", "put: use only one of --lines, --null and --files");
  if (msgId !== undefined && ways > 0) throw new BatonError("USAGE", "put: --msg-id is for a single message");
  const [path] = paths;
  if (files) {
    if (path === undefined) throw new BatonError("USAGE", "put --files: missing PATH");
    return openPutFilesInput(paths);
  }
  if (paths.length > 1) {
    throw new BatonError("USAGE", `put: unexpected argument "${paths[1]}"; --files puts several files`);
  }
  if (lines || values.null) return openSplitPutInput(path ?? "-", lines ? "lines" : "null", resume);
  if (path !== undefined) return openPutFilesInput([path]);
  if (resume) return null;
  throw new BatonError("USAGE", `put: missing PATH; - is stdin${io.stdinIsTerminal ? "" : ", --lines its lines"}`);
}

/**
 * Opens an input in which each line of a file, or each part between NULs, is a message; `-` is stdin. A file that is
 * resumed may be missing: a rotation has renamed it, and its program has not yet made the new one.
 */
export function openSplitPutInput(path: string, by: "lines" | "null", resume = false): ClientPutInput {
  const from = path === "-" ? null : resolve(path);
  const isMissing = from !== null && resume && !existsSync(from);
  if (from !== null && !isMissing) requireInputFile(from, textAdvice);
  const source = from ?? "stdin";
  const separator = by === "lines" ? newline : 0;
  const read = () => splitInputIntoMessages(readChunks(from), separator);
  const totalBytes = () => from === null ? null : totalFileBytes([from]);
  return {
    kind: "sequence",
    name: splitInputName(source, separator),
    file: from !== null && (isMissing || statSync(from).isFile()) ? { path: from, separator } : null,
    source,
    isStream: from === null,
    isBulk: true,
    totalBytes,
    separatorBytes: 1,
    read,
  };
}

/** Returns the name that identifies the messages of a file or of stdin. */
export function splitInputName(source: string, separator: number): string {
  return `the ${separator === newline ? "lines" : "parts between NULs"} of ${source}`;
}

export function openTextPutInput(texts: readonly string[]): ClientPutInput {
  const bodies = texts.map((text) => new TextEncoder().encode(text));
  const source = "the command line";
  const read = async function* () {
    yield await Promise.resolve(bodies);
  };
  const totalBytes = () => countBytes(bodies);
  const isBulk = bodies.length > 1;
  const name = source;
  return { kind: "sequence", name, file: null, source, isStream: true, isBulk, totalBytes, separatorBytes: 0, read };
}

/** Opens an input in which each file is a message; `-` is stdin. */
export function openPutFilesInput(paths: readonly string[]): MessageFiles {
  const times = new Map<string, number>();
  const files = paths.map((given): WholeFile => {
    const path = given === "-" ? null : given;
    if (path !== null) requireInputFile(path, textAdvice);
    const name = path === null ? "stdin" : resolve(path);
    const time = (times.get(name) ?? 0) + 1;
    times.set(name, time);
    return { path, name: time === 1 ? `all of ${name}` : `all of ${name}, time ${time}` };
  });
  const read = async function* () {
    for (const { path } of files) yield [await readWhole(path)];
  };
  const named = files.flatMap(({ path }) => path ?? []);
  const totalBytes = () => totalFileBytes(named);
  const isBulk = files.length > 1;
  const source = named.length === 0 ? "stdin" : "the files";
  return { kind: "files", source, isStream: false, isBulk, files, totalBytes, separatorBytes: 0, read };
}

/** Reads a whole file, or stdin if `path` is null, but at most as much as a message may have. */
async function readWhole(path: string | null): Promise<Uint8Array> {
  const size = path === null ? null : totalFileBytes([path]);
  if (size !== null && size > messageBytesMax) {
    throw new BatonError("BAD_DATA", `${path} has ${size} bytes; a message has at most ${messageBytesMax}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of readChunks(path)) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes > messageBytesMax) {
      throw new BatonError("BAD_DATA", `${path ?? "stdin"} has more than ${messageBytesMax} bytes, a message's limit`);
    }
  }
  return Buffer.concat(chunks);
}

/** Reads a file, or stdin if `path` is null. */
async function* readChunks(path: string | null): AsyncGenerator<Uint8Array, void, void> {
  if (path === null && wasStreamClosedAtStart(0)) {
    const why = "it was closed when baton was started; redirect it from a file, or from /dev/null for an empty message";
    throw new BatonError("IO", `Cannot read stdin: ${why}`);
  }
  try {
    if (path === null) return yield* readStdinUnbuffered();
    for await (const chunk of createReadStream(path, { highWaterMark: readBytes })) yield chunk as Uint8Array;
  } catch (thrown) {
    throw unreadableInputError(path, thrown, textAdvice);
  }
}

/** Reads stdin without reading ahead, so that data that was not requested stays in the pipe. */
async function* readStdinUnbuffered(): AsyncGenerator<Uint8Array, void, void> {
  for (;;) {
    const chunk = Buffer.allocUnsafe(stdinBytes);
    try {
      const length = await new Promise<number>((done, failed) =>
        read(0, chunk, 0, chunk.byteLength, null, (error, length) => error === null ? done(length) : failed(error))
      );
      if (length === 0) return;
      yield chunk.subarray(0, length);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "EAGAIN") throw thrown;
      await new Promise((done) => setTimeout(done, emptyMs));
    }
  }
}

function totalFileBytes(paths: readonly string[]): number | null {
  try {
    const stats = paths.map((path) => statSync(path));
    return stats.every((stat) => stat.isFile()) ? stats.reduce((sum, { size }) => sum + size, 0) : null;
  } catch {
    return null; // the next read reports the reason
  }
}

function countBytes(items: readonly Uint8Array[]): number {
  return items.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

/** Yields the files that were not put yet or have changed since, and adds each of them to the checkpoint. */
export async function* readUnsentFiles(
  { files }: MessageFiles,
  notes: PutFilesCheckpoint,
  { taken, onSkipped }: {
    readonly taken: (name: string) => PutInputProgress | null;
    readonly onSkipped: (messages: number, bytes: number) => void;
  },
): AsyncGenerator<readonly Uint8Array[], void, void> {
  for (const { path, name } of files) {
    const body = await readWhole(path);
    const digest = extendInputDigest(emptyInputDigest, body);
    if (taken(name)?.digest === digest) onSkipped(1, body.byteLength);
    else {
      notes.addFile(name, digest);
      yield [body];
    }
  }
}
