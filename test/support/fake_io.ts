/** An Io that keeps what is written to it. */
import type { Io } from "../../src/base/terminal/io.ts";

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
    out: (content, stream) => void (stream === "stderr" ? err : out).push(Buffer.from(content).toString()),
    err: (text) => void err.push(text),
    frame: (stream, text) => (stream === "stdout" ? out : err).push(text) > 0,
    written: () => Promise.resolve(),
    drop: () => {},
    stdout: () => out.join(""),
    stderr: () => err.join(""),
  };
}
