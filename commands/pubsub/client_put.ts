/** `put`: what becomes messages, and what is said at the end. */
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { WaitLine } from "../../src/cli/wait_line.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import type { InputPlace } from "../../src/recipes/pubsub/client/client_state.ts";
import { chained, emptyChain } from "../../src/recipes/pubsub/client/item_chain.ts";
import { messageBytesMax } from "../../src/recipes/pubsub/client/client_limits.ts";
import { Publisher } from "../../src/recipes/pubsub/client/publisher.ts";
import { splitItems } from "../../src/recipes/pubsub/client/split_items.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { ClientCall } from "./client.ts";
import type { ClientRun } from "./run_client.ts";

/** What is put. */
interface Input {
  readonly kind: string;
  /** A stream cannot be had again from its beginning: what comes of it is always new. */
  readonly isStream: boolean;
  readonly isSingle: boolean;
  read(): AsyncIterable<readonly Uint8Array[]>;
}

const newline = 10;
const readBytes = 256 << 10;
const showEveryMs = 200;

export async function clientPut({ call, words, client, signal }: ClientRun): Promise<ExitCode> {
  const { values, io } = call;
  const { topic } = words;
  const input = inputOf(call, words.rest);
  const { state } = client;
  const publisher = new Publisher(client, topic);
  using bar = new Bar(call);
  try {
    let resumed = 0;
    if (values.resume) resumed = await publisher.resume({ signal, onStored: (count) => bar.stored(count) });
    else warnOfIntents(call, topic, state.countIntents(topic));
    if (values.resume && !values.quiet) io.err(`baton: ${resumed} messages were put again, and are stored once\n`);
    if (input === null) return exitCodes.SUCCESS;
    const place = values.resume ? placeOf(input, state.input(topic)) : null;
    const taken = place?.taken ?? 0;
    const begin = { kind: input.kind, taken, chain: place?.chain ?? emptyChain };
    const count = await publisher.putAll(place === null ? input.read() : behind(input, place), {
      msgId: values.msgId ?? null,
      input: begin,
      signal,
      onStored: (stored) => bar.stored(stored),
    });
    if (values.resume && count === 0 && !values.quiet) io.err("baton: nothing was left to put\n");
    return exitCodes.SUCCESS;
  } catch (thrown) {
    const left = state.countIntents(topic);
    if (left > 0 && !values.quiet) {
      io.err(
        `baton: what became of ${left} messages is not known; they are kept: baton pubsub client ${words.id} put ${topic} ` +
          "--resume sends the same again\n",
      );
    }
    const place = state.input(topic);
    if (input?.isStream === true && place?.kind === input.kind && !values.quiet) {
      io.err(`baton: ${place.taken} messages of stdin were taken; those behind them were not put\n`);
    }
    throw thrown;
  }
}

/** Null: nothing, but for what is resumed. Throws USAGE. */
function inputOf({ values, io }: ClientCall, paths: readonly string[]): Input | null {
  const { lines, files, msgId, resume } = values;
  const ways = [lines, values.null, files].filter(Boolean).length;
  if (ways > 1) throw new BatonError("USAGE", "put: only one of --lines, --null and --files can be");
  if (msgId !== undefined && ways > 0) throw new BatonError("USAGE", "put: --msg-id is for a single message");
  const [path] = paths;
  if (files) {
    if (path === undefined) throw new BatonError("USAGE", "put --files: a PATH is missing");
    const kind = `the files ${paths.map((one) => resolve(one)).join(", ")}`;
    return { kind, isStream: false, isSingle: false, read: () => eachFile(paths) };
  }
  if (paths.length > 1) {
    throw new BatonError("USAGE", `put: "${paths[1]}" is too much; --files puts each of several files`);
  }
  if (lines || values.null) {
    const from = path === undefined || path === "-" ? null : resolve(path);
    const kind = `${lines ? "the lines" : "the parts between NULs"} of ${from ?? "stdin"}`;
    const read = () => splitItems(bytesOf(from), lines ? newline : 0);
    return { kind, isStream: from === null, isSingle: false, read };
  }
  if (path === undefined) {
    if (resume) return null;
    throw new BatonError(
      "USAGE",
      `put: a PATH is missing; - is stdin${io.stdinIsTerminal ? "" : ", --lines its lines"}`,
    );
  }
  return { kind: "one message", isStream: false, isSingle: true, read: () => eachFile([path]) };
}

async function* eachFile(paths: readonly string[]): AsyncGenerator<Uint8Array[], void, void> {
  for (const path of paths) yield [path === "-" ? await wholeStdin() : await contentOf(path)];
}

async function contentOf(path: string): Promise<Uint8Array> {
  try {
    const bytes = await readFile(path);
    if (bytes.byteLength <= messageBytesMax) return bytes;
    throw new BatonError("BAD_DATA", `${path} has ${bytes.byteLength} bytes; a message has at most ${messageBytesMax}`);
  } catch (thrown) {
    if (thrown instanceof BatonError) throw thrown;
    throw new BatonError("IO", `Cannot read ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

async function wholeStdin(): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of bytesOf(null)) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes > messageBytesMax) {
      throw new BatonError("BAD_DATA", `stdin has more than ${messageBytesMax} bytes, a message's limit`);
    }
  }
  return Buffer.concat(chunks);
}

/** A file's, or stdin's. */
async function* bytesOf(path: string | null): AsyncGenerator<Uint8Array, void, void> {
  try {
    const stream = path === null
      ? createReadStream("", { fd: 0, autoClose: false, highWaterMark: readBytes })
      : createReadStream(path, { highWaterMark: readBytes });
    for await (const chunk of stream) yield chunk as Uint8Array;
  } catch (thrown) {
    throw new BatonError("IO", `Cannot read ${path ?? "stdin"}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Where to go on; null: at the beginning. Throws USAGE for another input than the one that was interrupted. */
function placeOf({ kind, isStream, isSingle }: Input, place: InputPlace | null): InputPlace | null {
  if (place === null || isStream || (isSingle && place.kind !== kind)) return null;
  if (place.kind === kind) return place;
  throw new BatonError("USAGE", `What was put last was ${place.kind}, and not ${kind}: --resume goes on with the same`);
}

/** Without the first ones, which were taken before. Throws BAD_DATA when they are not the same any more. */
async function* behind(input: Input, { taken, chain }: InputPlace): AsyncGenerator<readonly Uint8Array[], void, void> {
  let [skipped, found] = [0, emptyChain];
  for await (const chunk of input.read()) {
    const skip = Math.min(taken - skipped, chunk.length);
    for (const item of chunk.slice(0, skip)) found = chained(found, item);
    skipped += skip;
    if (skip > 0 && skipped === taken && found !== chain) {
      if (!input.isSingle) throw new BatonError("BAD_DATA", changed(input.kind, taken));
      yield chunk; // another message
    } else if (skip < chunk.length) yield chunk.slice(skip);
  }
  if (skipped < taken) throw new BatonError("BAD_DATA", changed(input.kind, taken));
}

function changed(kind: string, taken: number): string {
  return `Cannot go on with ${kind}: its first ${taken} messages are not those that were put; without --resume all are put`;
}

function warnOfIntents({ values, io }: ClientCall, topic: string, count: number): void {
  if (count === 0 || values.quiet) return;
  io.err(
    `baton: what became of ${count} earlier messages for "${topic}" is not known; put ${topic} --resume finds out\n`,
  );
}

/** How many, and how fast; on a terminal only. */
class Bar implements Disposable {
  readonly #line: WaitLine | null;
  readonly #startMs = performance.now();
  #shownMs = -Infinity;
  #count = 0;

  constructor({ io, values }: ClientCall) {
    this.#line = WaitLine.fits(io) && !values.quiet && (values.lines || values.null || values.files)
      ? new WaitLine(io)
      : null;
  }

  stored(count: number): void {
    this.#count += count;
    const nowMs = performance.now();
    if (this.#line === null || nowMs - this.#shownMs < showEveryMs) return;
    this.#shownMs = nowMs;
    const rate = Math.round(this.#count / Math.max(0.001, (nowMs - this.#startMs) / 1000));
    this.#line.show(`${this.#count} messages stored, ${rate} a second`);
  }

  [Symbol.dispose](): void {
    this.#line?.[Symbol.dispose]();
  }
}
