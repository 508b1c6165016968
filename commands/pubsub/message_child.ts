/** Runs a line of shell with a message for its stdin. */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { onAbort } from "../../src/support/abort.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";

/** Resolves with its exit code, as a shell counts it. A stop request is passed on, and its end waited for. */
export function runForMessage(line: string, body: Uint8Array, { env, signal }: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}): Promise<ExitCode> {
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", ["-c", line], { env, stdio: ["pipe", "inherit", "inherit"] });
    const off = onAbort(signal, () => void child.kill("SIGTERM"));
    child.once("error", () => {
      off();
      resolve(exitCodes.START_FAILED);
    });
    child.once("exit", (code, name) => {
      off();
      resolve(code ?? 128 + (name === null ? 0 : constants.signals[name]));
    });
    child.stdin.on("error", () => {}); // it need not read all of the message, or any
    child.stdin.end(body);
  });
}
