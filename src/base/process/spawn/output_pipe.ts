/**
 * Makes pipes for the output of a command. Bun itself would use sockets, which a command cannot open as /dev/stdout or
 * /dev/stderr. The ends are not close-on-exec. Nevertheless, commands that start meanwhile do not inherit them, because
 * Bun closes all descriptors in a child except the listed ones. Bun only.
 */
import { closeSync } from "node:fs";
import { loadLibc } from "../libc.ts";

/** The output of a command, which is read once. */
export interface CommandOutput extends AsyncIterable<Uint8Array> {
  /** Ends the reading, although a process may still write. Missing in a runtime that cannot end it. */
  destroy?(): unknown;
}

/**
 * Starts a command with the write ends of new pipes. Passes none if they cannot be opened. If the command starts, adds
 * its outputs to the result. An output can be read only once, because the reader closes the pipe.
 */
export async function withOutputPipes<S extends { readonly isRead?: unknown }, T extends { readonly kind: string }>(
  start: S,
  spawn: (piped: S & { readonly pipes: readonly number[] }) => Promise<T>,
): Promise<T> {
  const pipes = await openPipes(start.isRead === "both" ? 2 : 1);
  let isStarted = false;
  try {
    const result = await spawn({ ...start, pipes: pipes.map(({ writeEnd }) => writeEnd) });
    isStarted = result.kind === "started";
    const [output, errors = null] = pipes.map((pipe) => pipe.output);
    return !isStarted || output === undefined ? result : { ...result, output, errors };
  } finally {
    for (const { writeEnd, output } of pipes) {
      closeSync(writeEnd);
      if (!isStarted) output.close();
    }
  }
}

interface OutputPipe {
  readonly writeEnd: number;
  readonly output: PipeOutput;
}

/** Returns no pipe if not all can be opened. */
async function openPipes(count: number): Promise<readonly OutputPipe[]> {
  const libc = await loadLibc();
  const pipes: OutputPipe[] = [];
  const ends = new Int32Array(2);
  while (pipes.length < count && libc?.openPipe(new Uint8Array(ends.buffer))) {
    const [readEnd = -1, writeEnd = -1] = ends;
    try {
      pipes.push({ writeEnd, output: new PipeOutput(readEnd) });
    } catch {
      closeSync(readEnd); // no further descriptor is free
      closeSync(writeEnd);
      break;
    }
  }
  if (pipes.length === count) return pipes;
  for (const { writeEnd, output } of pipes) {
    closeSync(writeEnd);
    output.close();
  }
  return [];
}

function openReader(fd: number) {
  return Bun.file(fd).stream().getReader();
}

/** The read end of a pipe. */
class PipeOutput implements CommandOutput {
  readonly #fd: number;
  readonly #reader: ReturnType<typeof openReader>;

  /** Throws if no further descriptor is free. */
  constructor(fd: number) {
    this.#fd = fd;
    this.#reader = openReader(fd);
  }

  /** Closes an output that is not read. */
  close(): void {
    void this.destroy();
    closeSync(this.#fd);
  }

  async destroy(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (let next = await this.#reader.read(); !next.done; next = await this.#reader.read()) yield next.value;
    } finally {
      await this.destroy();
      closeSync(this.#fd);
    }
  }
}
