/**
 * Makes Bun compile JavaScript as early as it normally does, for a service. The binary starts with thresholds 100 times
 * as high (scripts/compile.sh), because most commands end before compiled code pays off.
 */
export function restoreCompileThresholds(): void {
  if ("Bun" in globalThis) Bun.unsafe.setJITPolicy(1);
}
