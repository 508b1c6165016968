/**
 * Sets the usual thresholds for the compilation of JavaScript, for a service. The binary starts with 100 times these
 * (scripts/compile.sh), because most commands end before compiled code pays off. Bun only.
 */
export function restoreCompileThresholds(): void {
  if ("Bun" in globalThis) Bun.unsafe.setJITPolicy(1);
}
