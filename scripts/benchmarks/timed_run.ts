/** Runs programs that connect, start their work together, and report when they are done. */
import type { LockContestant } from "./contestant.ts";

/**
 * Returns the seconds from the start signal to the last program's "done". Each program prints "ready", reads a line,
 * works, and prints "done". `signal` kills them.
 */
export async function timedRun(
  contestant: LockContestant,
  commands: readonly string[][],
  signal: AbortSignal,
): Promise<number> {
  const children = commands.map((command) =>
    Bun.spawn(command, {
      env: { ...process.env, ...contestant.environment },
      stdio: ["pipe", "pipe", "inherit"],
      signal,
      killSignal: "SIGKILL",
    })
  );
  const outputs = children.map((child) => lines(child.stdout));
  const all = async (wanted: string) => {
    for (const output of outputs) {
      const { value } = await output.next();
      if (value !== wanted) throw new Error(`${contestant.name} said "${value}" instead of "${wanted}"`);
    }
  };
  await all("ready");
  const start = performance.now();
  for (const child of children) {
    child.stdin.write("go\n");
    child.stdin.flush();
  }
  await all("done");
  const seconds = (performance.now() - start) / 1000;
  await Promise.all(children.map((child) => child.exited));
  return seconds;
}

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true });
    const parts = rest.split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}
