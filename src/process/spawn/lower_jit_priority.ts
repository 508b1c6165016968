/**
 * Less compilation of JavaScript for a process that runs a few hundred short tasks: a pool that ran a hundred short commands spent a
 * quarter of its CPU time in the compiler. Code that runs for a long time is still compiled, later. Only Bun supports it.
 */

/** The number of calls after which a function is compiled grows by this factor. 100 needs an eighth less CPU time than 10 for a pool. */
const callsFactor = 100;

export function lowerJitPriority(): void {
  if ("Bun" in globalThis) Bun.unsafe.setJITPolicy(callsFactor);
}
