/** For a process that does some hundred short things and then ends, or one now and then: compiling costs more than it saves. */

/**
 * By so much more often than usual a function has to run before it is compiled. What runs for each job is compiled after a
 * thousand of them; ten runs of a hundred jobs each need an eighth less of the processor's time than with 10.
 */
const reluctance = 100;

/**
 * From now on. Bun alone lets a program say so: of a pool that runs a hundred short jobs a quarter of the processor's time
 * went into the compiler. What runs for long is compiled all the same, only later.
 */
export function lowerJitPriority(): void {
  if ("Bun" in globalThis) Bun.unsafe.setJITPolicy(reluctance);
}
