/** Explains why a program could not be started. Loaded only after such a failure. */
import { systemCallErrorReason } from "../../errors.ts";
import { readOpenFilesLimit } from "./shell_start.ts";

export interface StartFailure {
  readonly kind: "not_found" | "not_executable" | "start_failed";
  readonly message: string;
}

/**
 * Classifies an error of exec like env(1): a missing file or "#!" interpreter is not_found (127), other errors are
 * not_executable (126).
 */
export function describeStartFailure(path: string, error: unknown): StartFailure {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (code === "ENOENT") {
    return { kind: "not_found", message: `Cannot run "${path}": the interpreter in its first line does not exist` };
  }
  if (code === "E2BIG") {
    const message = `Cannot start "${path}": arguments and environment are longer than the kernel accepts (E2BIG); ` +
      "use fewer, or pass them in a file";
    return { kind: "start_failed", message };
  }
  // fcntl(2) fails with EINVAL for a descriptor above the limit, which was opened before the limit was lowered.
  const isOutOfFiles = code === "EMFILE" || (code === "EINVAL" && (error as NodeJS.ErrnoException).syscall === "fcntl");
  if (isOutOfFiles) {
    const limit = readOpenFilesLimit() ?? "unknown";
    const message =
      `Cannot start "${path}": the limit of open files is reached (${limit}, ${code}); raise it with ulimit -n`;
    return { kind: "start_failed", message };
  }
  const kind = ["EAGAIN", "ENOMEM", "ENFILE", ""].includes(code) ? "start_failed" : "not_executable";
  return { kind, message: `Cannot start "${path}": ${systemCallErrorReason(error)}` };
}
