/**
 * The guard: a second process that outlives baton's death and pauses. It sleeps on a pipe from baton; when the pipe ends
 * without a "done", or the deadline passes without a renewal, it kills the job. It never talks to a server and never
 * stops a job in an orderly way: it is for the moments in which baton itself cannot act.
 *
 * It blocks in poll(2) rather than run an event loop: one thread, little memory, nothing that could be late.
 */
import { type Libc, loadLibc } from "../child/libc.ts";
import { type GuardState, idleGuard, readGuardLine } from "./guard_state.ts";

/** Not baton's, so that `pkill baton` does not take both; 15 bytes at most. */
export const guardName = "lock-guard";

const input = 0;
const output = 1;

/** A look at the clock at least this often: poll(2) sleeps through a suspend of the machine without noticing it. */
const lookEveryMs = 1000;

/** Reads can fail for a passing reason; a pipe that cannot be read this often in a row is as good as ended. */
const failedReadsMax = 3;

/** Runs until there is nothing (left) to guard. The exit code says nothing to anybody. */
export async function runGuard(): Promise<void> {
  const libc = await loadLibc();
  if (libc === null) return;
  for (const signal of [1, 2, 3, 15]) libc.ignoreSignal(signal); // HUP INT QUIT TERM
  libc.setProcessName(guardName);
  if ("Deno" in globalThis) await closeInherited(libc);
  const state = sleepUntilNeeded(libc);
  if (state.done || state.cookie === null) return;
  const { strike } = await import("./strike.ts");
  say(libc, "struck");
  const clearedAtMs = strike(state, libc);
  // After the end of the pipe there was no deadline to keep, and nobody reads this.
  say(libc, `cleared ${Math.max(0, Math.round(clearedAtMs - state.deadlineMs))}`);
}

function sleepUntilNeeded(libc: Libc): GuardState {
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(4096);
  let state = idleGuard;
  let text = "";
  let failedReads = 0;
  say(libc, "ready");
  for (;;) {
    const remainingMs = state.deadlineMs - libc.bootTimeMs();
    if (remainingMs <= 0) return state;
    if (!libc.waitReadable(input, Math.min(remainingMs, lookEveryMs))) continue;
    const length = libc.read(input, chunk);
    failedReads = length < 0 ? failedReads + 1 : 0;
    if (length === 0 || failedReads === failedReadsMax) return state;
    // After a pause the deadline counts, not a renewal that had been lying in the pipe when it passed.
    if (libc.bootTimeMs() >= state.deadlineMs) return state;
    text += decoder.decode(chunk.subarray(0, Math.max(0, length)), { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      state = readGuardLine(state, line);
      if (state.done) return state;
    }
  }
}

function say(libc: Libc, word: string): void {
  libc.write(output, new TextEncoder().encode(`${word}\n`));
}

/** Deno hands on every descriptor it was given; one that is kept open here would keep a reader of it waiting. */
async function closeInherited(libc: Libc): Promise<void> {
  const { inheritedDescriptors } = await import("../child/inherited_descriptors.ts");
  for (const fd of inheritedDescriptors()) libc.close(fd);
}
