/**
 * Makes a pipe for the output of a command. Bun itself would use a socket, which a command cannot open as /dev/stdout
 * or /dev/stderr. Bun only.
 */
import { closeSync } from "node:fs";
import { loadLibc } from "../libc.ts";

/**
 * Calls `start` with the write end of a new pipe, which becomes the output of the command. Passes null if no pipe can
 * be opened. If the command starts, adds its output to the result. The output can be read only once, because the reader
 * closes the pipe.
 */
export async function withOutputPipe<T extends { readonly kind: string }>(
  start: (writeEnd: number | null) => Promise<T>,
): Promise<T> {
  const ends = new Int32Array(2);
  if (!(await loadLibc())?.openPipe(new Uint8Array(ends.buffer))) return await start(null);
  const [readEnd = -1, writeEnd = -1] = ends;
  try {
    const result = await start(writeEnd);
    if (result.kind === "started") return { ...result, output: readToEnd(readEnd) };
    closeSync(readEnd);
    return result;
  } finally {
    closeSync(writeEnd);
  }
}

async function* readToEnd(fd: number): AsyncGenerator<Uint8Array> {
  try {
    yield* Bun.file(fd).stream();
  } finally {
    closeSync(fd);
  }
}
