/**
 * The holder process. `baton hold` starts it, and it continues after the end of `baton hold`. For a running script, it
 * does what `baton lock` does for its command. Until the script has received the variables, it reports to `baton hold`;
 * after that, to the script's stderr.
 */
import process from "node:process";
import { closeInheritedDescriptors } from "../../../src/base/process/spawn/inherited_descriptors.ts";
import { loadLibc } from "../../../src/base/process/libc.ts";
import {
  ownSignalSource,
  type SignalSource,
  StoppedBySignal,
} from "../../../src/base/process/supervise/signal_source.ts";
import { startGuard } from "../../../src/base/process/guard/guard.ts";
import { holderProcessName } from "../../../src/coordination/hold/find_holds.ts";
import { parseHeldLocks, removeEndedHolderIds } from "../../../src/coordination/hold/hold_list.ts";
import { HolderPipe, type HolderRequest } from "../../../src/coordination/hold/holder_pipe.ts";
import { isReleaseSocketUsable } from "../../../src/coordination/hold/release_socket.ts";
import { ScriptWatch } from "../../../src/coordination/hold/script_process.ts";
import { holderSignals, superviseScript } from "../../../src/coordination/hold/supervise_script.ts";
import { type Io, stderrSentencePrinter } from "../../../src/base/terminal/io.ts";
import { BatonError, errorMessage } from "../../../src/base/errors.ts";
import { rejectOnAbort } from "../../../src/base/support/abort.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import { type PackedLockOptions, unpackLockOptions } from "./hold_options.ts";
import type { LockEnding } from "../../../src/coordination/job/lock_ending.ts";
import { StatusReportFacts } from "../../../src/coordination/job/run_with_status_report.ts";
import { lockedJobDependencies, runLockedJob } from "../locked_job.ts";

type LockHolderPipe = HolderPipe<LockEnding>;

/** Runs the holder process. Its exit code is only for logs, because no process waits for it. */
export async function runHolderProcess(io: Io): Promise<ExitCode> {
  const libc = await loadLibc();
  libc?.setProcessName(holderProcessName);
  // Closes inherited pipes, because the reader of an open pipe would keep waiting.
  if ("Deno" in globalThis && libc !== null) closeInheritedDescriptors(libc, io.inheritedFds);
  const pipe: LockHolderPipe = new HolderPipe(io);
  const stop = new AbortController();
  pipe.abandoned.addEventListener("abort", () => stop.abort());
  using signals = holderSignals(ownSignalSource(), stop.signal);
  const line = await rejectOnAbort(pipe.request, pipe.abandoned).catch(() => null);
  if (line === null) return exitCodes.SUCCESS;
  const facts = new StatusReportFacts();
  try {
    const request = JSON.parse(line) as HolderRequest<PackedLockOptions>;
    const ending = await acquireAndSupervise(request, io, { pipe, stop, signals, facts });
    if (!pipe.isConfirmed) pipe.send({ kind: "ended", ending });
    else if (ending.message !== null) io.err(`baton: ${ending.message}\n`);
    return ending.exitCode;
  } catch (thrown) {
    const { code, message } = failureOf(thrown);
    if (!pipe.isConfirmed) pipe.send({ kind: "failed", code, message });
    else io.err(`baton: ${message}\n`);
    return exitCodes.INTERNAL;
  }
}

async function acquireAndSupervise(
  request: HolderRequest<PackedLockOptions>,
  io: Io,
  { pipe, stop, signals, facts }: {
    readonly facts: StatusReportFacts;
    readonly pipe: LockHolderPipe;
    readonly stop: AbortController;
    readonly signals: SignalSource;
  },
): Promise<LockEnding> {
  const { script } = request;
  const { ended = [], held = [] } = Object.groupBy(
    parseHeldLocks(io.env["BATON_HOLD"]),
    ({ path }) => isReleaseSocketUsable(path) ? "held" : "ended",
  );
  const env = { ...process.env, BATON_LOCK_COOKIE: removeEndedHolderIds(ended, request.env["BATON_LOCK_COOKIE"]) };
  const options = unpackLockOptions(request.options, env);
  const ownIo = holderIo(io, env, { pipe, columns: request.columns });
  // The wait for the lock ends when the script ends.
  using watch = new ScriptWatch(script, systemClock());
  const dependencies = lockedJobDependencies(startGuard(stderrSentencePrinter(io)));
  let isHeld = false;
  watch.ended.then(() => isHeld || stop.abort());
  return await runLockedJob(options, ownIo, {
    facts,
    deps: {
      ...dependencies,
      signals,
      connect(how) {
        process.chdir("/"); // all files with a relative path have been read; / keeps no folder busy
        return dependencies.connect(how);
      },
      supervise: (supervision) => {
        const [first, ...others] = facts.leases;
        if (first === undefined) throw new Error("a script is supervised that holds nothing");
        return superviseScript(supervision, {
          script,
          names: options.names,
          ids: [first.holderId, ...others.map((lease) => lease.holderId)],
          otherHolds: held,
          abandoned: pipe.abandoned,
          onHeld(variables) {
            isHeld = true;
            watch[Symbol.dispose]();
            pipe.send({
              kind: "held",
              variables: Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, value ?? null])),
              tokens: [first, ...others].map((lease) => lease.fencingToken.toString()),
              waitedMs: facts.waitedMs ?? 0,
            });
          },
        });
      },
    },
  });
}

function holderIo(
  io: Io,
  env: Io["env"],
  { pipe, columns }: { readonly pipe: LockHolderPipe; readonly columns: number | null },
): Io {
  return {
    env,
    stdinIsTerminal: false,
    stdoutIsTerminal: false,
    stderrIsTerminal: columns !== null,
    inheritedFds: [],
    columns: columns ?? 80,
    out: () => {},
    err: (text, form) => pipe.isConfirmed ? io.err(text, form) : pipe.send({ kind: "stderr", text, form }),
    frame: (stream, text) => pipe.isConfirmed ? io.frame(stream, text) : pipe.sendFrame(text),
    written: (stream, signal) => io.written(stream, signal),
    drop: () => {},
  };
}

function failureOf(thrown: unknown): Pick<BatonError, "code" | "message"> {
  if (thrown instanceof BatonError) return thrown;
  // No process reads this message, because `baton hold` or the holder process was stopped.
  if (thrown instanceof StoppedBySignal) {
    return { code: "NOT_HELD", message: "The script has ended: no longer waiting for the lock" };
  }
  const stack = thrown instanceof Error ? `\n${thrown.stack}` : "";
  return { code: "INTERNAL", message: `internal error, please report it: ${errorMessage(thrown)}${stack}` };
}
