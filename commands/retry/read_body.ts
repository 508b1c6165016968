/** Reads the body of a message from a file or from stdin, up to a limit. */
import { createReadStream } from "node:fs";
import { wasStreamClosedAtStart } from "../../src/base/process/spawn/inherited_descriptors.ts";
import { BatonError } from "../../src/base/errors.ts";
import { unreadableInputError } from "../input_files.ts";

const readBytes = 256 << 10;

/** Reads a file, or stdin if `path` is null. A chunk is valid only until the next chunk is read. Throws IO. */
export async function* readInputChunks(path: string | null): AsyncGenerator<Uint8Array, void, void> {
  if (path === null && wasStreamClosedAtStart(0)) {
    const why =
      "it was closed when baton was started; use a file, or </dev/null for an empty message (call also has --no-stdin)";
    throw new BatonError("IO", `Cannot read the message from stdin: ${why}`);
  }
  try {
    const options = { highWaterMark: readBytes };
    const stream = path === null
      ? createReadStream("", { ...options, fd: 0, autoClose: false })
      : createReadStream(path, options);
    for await (const chunk of stream) yield chunk as Uint8Array;
  } catch (error) {
    throw unreadableInputError(path, error);
  }
}

/** Reads the whole body. Throws IO, or BAD_DATA if it is longer than `bytesMax`. */
export async function readBody(path: string | null, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of readInputChunks(path)) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) {
      const what = path ?? "stdin";
      throw new BatonError("BAD_DATA", `${what} is longer than the limit of ${bytesMax} bytes (--max-body)`);
    }
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
