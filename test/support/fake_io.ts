/** An Io that keeps what is written to it. */
import type { Io } from "../../src/terminal/io.ts";

export interface FakeIo extends Io {
  readonly stdout: () => string;
  readonly stderr: () => string;
}

export function fakeIo(options: Partial<Io> = {}): FakeIo {
  const out: string[] = [];
  const err: string[] = [];
  return {
    env: {},
    stdinIsTerminal: false,
    stdoutIsTerminal: false,
    stderrIsTerminal: false,
    inheritedFds: [],
    columns: 80,
    ...options,
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    stdout: () => out.join(""),
    stderr: () => err.join(""),
  };
}
