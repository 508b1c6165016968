/** Runs test/fixtures/supervise.ts from outside, under one of the runtimes, and looks at what it leaves behind. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChildOutcome } from "../../src/base/process/spawn/child_outcome.ts";
import type { SupervisionEvent } from "../../src/base/process/supervise/child_run.ts";
import { listProcesses, readProcess } from "../../src/base/process/proc/process_table.ts";
import type { SuperviseFixtureOptions } from "../fixtures/supervise.ts";
import { eventually } from "./eventually.ts";

const project = join(import.meta.dir, "../..");
const fixture = join(project, "test/fixtures/supervise.ts");
const bin = join(project, "node_modules/.bin");

/** The same code under both: Bun's own way to start processes, and node:child_process as Deno has it. */
export const runtimes: readonly { readonly name: string; readonly command: readonly string[] }[] = [
  { name: "Bun", command: [join(bin, "bun"), fixture] },
  { name: "Deno", command: [join(bin, "deno"), "run", "-A", "--quiet", fixture] },
];

export interface SuperviseReport {
  readonly outcome: ChildOutcome;
  readonly events: readonly SupervisionEvent[];
  readonly tookMs: number;
  /** `QuietTime.ms`. */
  readonly quietMs: number;
}

export interface SuperviseRunOptions extends Omit<SuperviseFixtureOptions, "report"> {
  /** Script of the shell that starts it: `"$@"` stands for the fixture with its options and command. */
  readonly wrap?: string;
  /** Made before the start, in the run's own folder. */
  readonly files?: Readonly<Record<string, { readonly text: string; readonly mode: number }>>;
}

export class SuperviseRun implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "baton-supervise-"));
  /** Stands in the environment of everything the run starts: how the test finds it all. */
  readonly mark = `MARK=${crypto.randomUUID()}`;
  readonly process: Bun.Subprocess;

  /**
   * `{}` in the command, `wrap` and `files` is the run's own folder. The command may `touch {}/ready` for `ready()`.
   */
  constructor(
    runtime: { readonly command: readonly string[] },
    command: string | readonly string[],
    options: SuperviseRunOptions = {},
  ) {
    const { wrap = 'exec "$@"', files = {}, ...rest } = options;
    const place = (text: string) => text.replaceAll("{}", this.folder);
    const given: SuperviseFixtureOptions = {
      report: this.path("report"),
      ...rest,
      ...(rest.from === undefined ? {} : { from: place(rest.from) }),
      ...(rest.certainFrom === undefined ? {} : { certainFrom: place(rest.certainFrom) }),
    };
    const script = typeof command === "string" ? ["sh", "-c", command] : command;
    const words = [...runtime.command, JSON.stringify(given), ...script.map(place)];
    for (const [file, { text, mode }] of Object.entries(files)) writeFileSync(this.path(file), text, { mode });
    const [name = "", value = ""] = this.mark.split("=");
    this.process = Bun.spawn(["sh", "-c", place(wrap), "sh", ...words], {
      env: { ...process.env, [name]: value },
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  text(name: string): string {
    return readFileSync(this.path(name), "utf8");
  }

  /** What the run wrote to standard output, when everybody has closed it. */
  output(): Promise<string> {
    return new Response(this.process.stdout as ReadableStream).text();
  }

  ready(name = "ready"): Promise<string> {
    return eventually(() => this.text(name) || " ", { what: `the command to write ${name}`, withinMs: 10_000 });
  }

  async report(): Promise<SuperviseReport> {
    await this.process.exited;
    return JSON.parse(this.text("report")) as SuperviseReport;
  }

  /** Pids of what carries the mark and lives, by a predicate over its command line. */
  processes(wanted: (commandLine: string) => boolean = () => true): number[] {
    const found: number[] = [];
    for (const { pid, dead } of listProcesses().flatMap((pid) => readProcess(pid) ?? [])) {
      try {
        if (dead || !readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(this.mark)) continue;
        if (wanted(readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ").trim())) found.push(pid);
      } catch {
        continue; // gone meanwhile
      }
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.processes()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        continue; // gone meanwhile
      }
    }
    await this.process.exited;
    rmSync(this.folder, { recursive: true });
  }
}
