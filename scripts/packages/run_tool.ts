/** Runs other programs, each with a deadline, and shows their output if they fail. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import process from "node:process";
import { ReleaseError } from "./project.ts";

export interface ToolOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  /** The program is killed after this time. */
  readonly minutesMax?: number;
}

export interface ToolResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program and resolves when it has ended, whatever its exit code. */
export function runTool(command: readonly string[], options: ToolOptions = {}): Promise<ToolResult> {
  const [program = "", ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: { ...process.env, ...options.env },
      stdio: ["pipe", "pipe", "pipe"],
      timeout: (options.minutesMax ?? 5) * 60_000,
      killSignal: "SIGKILL",
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text);
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text);
    child.on("error", (error) => reject(new ReleaseError(69, `Cannot start ${program}: ${error.message}`)));
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
    // A program that reads nothing closes its end first.
    child.stdin.on("error", () => {}).end(options.input ?? "");
  });
}

/** Runs a program and returns its standard output. Throws if it fails. */
export async function runToolOrThrow(command: readonly string[], options: ToolOptions = {}): Promise<string> {
  const { code, signal, stdout, stderr } = await runTool(command, options);
  if (code === 0) return stdout;
  throw new ReleaseError(70, `${command.join(" ")} failed (${signal ?? `exit ${code}`}):\n${stdout}${stderr}`);
}

export function isProgramInPath(program: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
}
