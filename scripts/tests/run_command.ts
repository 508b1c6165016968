/** Runs one command of a test run, with all processes that it starts, and ends them with it. */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { readTestSummary, type TestSummary } from "./summary.ts";

export interface TestCommand {
  readonly name: string;
  readonly command: readonly string[];
}

export interface TestCommandOptions {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  /** The run is stopped if no test has ended for this long, in milliseconds. */
  readonly silentMsMax: number;
  /** Stops the run. */
  readonly signal: AbortSignal;
  /** Receives the output of the command. */
  show(text: string): void;
}

/** How long processes may take to end after SIGTERM, in milliseconds. */
const endingMs = 2000;

/** Matches a line about the end of a test, or of a check of tidy. */
const testEnd = /^(?:\((?:pass|fail|skip|todo)\) | \d+ (?:pass|fail)$)/m;

/** Runs one command, shows its output, and reads the summary at its end. */
export function runTestCommand(
  run: TestCommand,
  { root, env, silentMsMax, signal, show }: TestCommandOptions,
): Promise<TestSummary> {
  const { name, command: [program = "", ...args] } = run;
  return new Promise((resolve) => {
    // A group of its own: what the tests have started ends with them.
    const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let said = "";
    const hear = (chunk: string) => {
      if (testEnd.test(chunk)) timer.refresh();
      said += chunk;
      show(chunk);
    };
    let isStopped = false;
    const stop = (why: string) => {
      isStopped = true;
      hear(`\n(fail) ${name}: ${why}: it was stopped\n`);
      endGroup(child);
    };
    const timer = setTimeout(
      () => stop(`no test ended for ${Math.round(silentMsMax / 60_000)} minutes`),
      silentMsMax,
    );
    const stopBySignal = () => stop(String(signal.reason));
    if (signal.aborted) stopBySignal();
    else signal.addEventListener("abort", stopBySignal, { once: true });
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
    child.on("error", (error) => hear(`${error.message}\n`));
    child.on("close", (code) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stopBySignal);
      if (isStopped) signalGroup(child, "SIGKILL");
      resolve(readTestSummary(name, said, code));
    });
  });
}

/** Ends the command and everything it started: with SIGTERM, then with SIGKILL. */
function endGroup(child: ChildProcess): void {
  signalGroup(child, "SIGTERM");
  setTimeout(() => {
    signalGroup(child, "SIGKILL");
    // A process in a group of its own may hold the pipes open.
    child.stdout?.destroy();
    child.stderr?.destroy();
  }, endingMs).unref();
}

function signalGroup(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch {
    // No process of the group is left.
  }
}
