/** Prepares the process of a service: it runs for long, and must not wait for the reader of its messages. */
import { loadLibc } from "../src/process/libc.ts";
import { compileAsUsual } from "../src/process/spawn/compile_as_usual.ts";
import { raiseOpenFiles } from "../src/process/spawn/shell_start.ts";
import type { Io } from "../src/terminal/io.ts";
import { ServiceStderr } from "../src/terminal/service_stderr.ts";

/** Returns the same output with a stderr that does not block. The process may open as many files as the hard limit allows. */
export async function serviceIo(io: Io): Promise<Io> {
  compileAsUsual();
  const libc = await loadLibc();
  await raiseOpenFiles();
  const stderr = new ServiceStderr(io, libc);
  const err = { value: (text: string) => stderr.err(text), enumerable: true };
  return Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(io), err }) as Io; // its getters stay getters
}
