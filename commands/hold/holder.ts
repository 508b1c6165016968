/**
 * The holder: the process that `baton hold` starts and leaves behind. It does what `baton lock` does, for a script that runs
 * already. Says what it has to say to `baton hold` as long as that is there, and after that to the script's stderr.
 */
import process from "node:process";
import { closeInherited } from "../../src/process/spawn/inherited_descriptors.ts";
import { loadLibc } from "../../src/process/libc.ts";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { startGuard } from "../../src/process/guard/guard.ts";
import { type Held, parseHolds, withoutCookiesOf } from "../../src/process/hold/hold_list.ts";
import { HolderLink } from "../../src/process/hold/holder_link.ts";
import type { HolderRequest } from "../../src/process/hold/holder_messages.ts";
import { HolderSignals } from "../../src/process/hold/holder_signals.ts";
import { ReleaseDoor } from "../../src/process/hold/release_mailbox.ts";
import { ScriptWatch } from "../../src/process/hold/script_watch.ts";
import { superviseScript } from "../../src/process/hold/supervise_script.ts";
import type { Io } from "../../src/terminal/io.ts";
import { StoppedBySignal } from "../../src/process/supervise/stopped_by_signal.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { abortable } from "../../src/support/abort.ts";
import { systemClock } from "../../src/support/clock.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { type PackedLockOptions, unpacked } from "./hold_request.ts";
import type { LockEnding } from "../job/lock_ending.ts";
import { lockAndRun, lockDependencies, type LockProgress } from "../lock/lock.ts";

/** Not baton's, so that `pkill baton` does not take it along; 15 bytes at most. */
const holderName = "lock-holder";

type Link = HolderLink<LockEnding>;

/** The exit code says nothing to anybody but a reader of logs. */
export async function runHolder(io: Io): Promise<ExitCode> {
  const libc = await loadLibc();
  libc?.setProcessName(holderName);
  // One that is kept open here would keep a reader of it waiting.
  if ("Deno" in globalThis && libc !== null) closeInherited(libc, io.inheritedFds);
  const link: Link = new HolderLink();
  const stop = new AbortController();
  link.gone.addEventListener("abort", () => stop.abort());
  using signals = new HolderSignals(processSignals(), stop.signal);
  const line = await abortable(link.request, link.gone).catch(() => null);
  if (line === null) return exitCodes.SUCCESS;
  try {
    const ending = await holdFor(JSON.parse(line) as HolderRequest<PackedLockOptions>, io, { link, stop, signals });
    if (!link.isTaken) link.say({ kind: "ended", ending });
    else if (ending.message !== null) io.err(`baton: ${ending.message}\n`);
    return ending.exitCode;
  } catch (thrown) {
    const { code, message } = failureOf(thrown);
    if (!link.isTaken) link.say({ kind: "failed", code, message });
    else io.err(`baton: ${message}\n`);
    return exitCodes.INTERNAL;
  }
}

async function holdFor(
  request: HolderRequest<PackedLockOptions>,
  io: Io,
  { link, stop, signals }: { readonly link: Link; readonly stop: AbortController; readonly signals: HolderSignals },
): Promise<LockEnding> {
  const { script } = request;
  const { over, held } = holdsOf(io.env["BATON_HOLD"]);
  const env = { ...process.env, BATON_LOCK_COOKIE: withoutCookiesOf(over, request.env["BATON_LOCK_COOKIE"]) };
  const options = unpacked(request.options, env);
  const progress: LockProgress = { leases: null, waitedMs: null, outcome: null };
  // A script that ends while it waits waits no more.
  using watch = new ScriptWatch(script, systemClock());
  const dependencies = lockDependencies(startGuard());
  let isHanded = false;
  watch.ended.then(() => isHanded || stop.abort());
  return await lockAndRun(options, holderIo(io, env, { link, columns: request.columns }), {
    progress,
    deps: {
      ...dependencies,
      signals,
      connect(how) {
        process.chdir("/"); // files that were named by a relative path have been read; no folder is kept busy
        return dependencies.connect(how);
      },
      supervise: (supervision) => {
        const [first, ...others] = progress.leases ?? [];
        if (first === undefined) throw new Error("a script is supervised that holds nothing");
        return superviseScript(supervision, {
          script,
          names: options.names,
          ids: [first.holderId, ...others.map((lease) => lease.holderId)],
          others: held,
          gone: link.gone,
          handOver(variables) {
            isHanded = true;
            watch[Symbol.dispose]();
            link.say({
              kind: "held",
              variables: Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, value ?? null])),
              tokens: [first, ...others].map((lease) => lease.fencingToken.toString()),
              waitedMs: progress.waitedMs ?? 0,
            });
          },
        });
      },
    },
  });
}

/** What the script holds besides, and what it held. */
function holdsOf(text: string | undefined): { over: Held[]; held: Held[] } {
  const [over, held]: [Held[], Held[]] = [[], []];
  for (const hold of parseHolds(text)) {
    let door: ReleaseDoor | null = null;
    try {
      door = ReleaseDoor.open(hold.path, hold.ids[0]);
      (door === null ? over : held).push(hold);
    } catch {
      held.push(hold); // another user's: it may well be there
    } finally {
      door?.[Symbol.dispose]();
    }
  }
  return { over, held };
}

function holderIo(
  io: Io,
  env: Io["env"],
  { link, columns }: { readonly link: Link; readonly columns: number | null },
): Io {
  return {
    env,
    stdinIsTerminal: false,
    stderrIsTerminal: columns !== null,
    inheritedFds: [],
    columns: columns ?? 80,
    out: () => {},
    err: (text) => link.isTaken ? io.err(text) : link.say({ kind: "says", text }),
  };
}

function failureOf(thrown: unknown): Pick<BatonError, "code" | "message"> {
  if (thrown instanceof BatonError) return thrown;
  // Nobody waits for it: `baton hold` was stopped, or this.
  if (thrown instanceof StoppedBySignal) {
    return { code: "NOT_HELD", message: "The script has ended, and waits no more" };
  }
  const stack = thrown instanceof Error ? `\n${thrown.stack}` : "";
  return { code: "INTERNAL", message: `internal error, please report it: ${messageOf(thrown)}${stack}` };
}
