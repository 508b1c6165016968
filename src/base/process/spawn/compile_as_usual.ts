/**
 * The binary starts with thresholds for the compilation of JavaScript that are 100 times the usual ones
 * (scripts/compile.sh): most commands end before compiled code pays. Services set the usual ones. Only Bun has these
 * thresholds.
 */
export function restoreCompileThresholds(): void {
  if ("Bun" in globalThis) Bun.unsafe.setJITPolicy(1);
}
