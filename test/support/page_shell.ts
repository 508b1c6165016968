/**
 * Runs the fenced blocks of a page in a shell, as a reader does: files are written, commands run, shown output is
 * compared.
 */
import { chmodSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { basename, dirname, isAbsolute } from "node:path";
import process from "node:process";
import { expect } from "bun:test";
import { BatonSession, type Ended } from "./baton_session.ts";
import { eventually } from "./eventually.ts";
import { isProcessGroupAlive } from "../../src/base/process/proc/process_table.ts";
import { blocksOfPage, type PageBlock, showsLines } from "./page_blocks.ts";

export interface PageOptions {
  /** Text of the page that a test has to choose itself, such as addresses. */
  readonly replace?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Files that the reader has: name and content. */
  readonly files?: Readonly<Record<string, string>>;
}

interface BlockRun {
  /** What the block has printed up to now, stdout and stderr. */
  output(): string;
}

/** Files of baton that a test cannot write: the place in the reader's home with the same effect. */
const ownPlaces: Readonly<Record<string, string>> = { "/etc/baton/config.toml": ".config/baton/config.toml" };

export class PageShell implements AsyncDisposable {
  readonly session: BatonSession;
  readonly blocks: readonly PageBlock[];
  readonly #groups: number[] = [];
  #runs = 0;

  constructor(page: string, { replace = {}, env = {}, files = {} }: PageOptions = {}) {
    this.session = new BatonSession({ BATON_RETRY_STORE: "retry-store", ...env });
    mkdirSync(this.session.path("bin"));
    symlinkSync(this.session.env["baton"] ?? "", this.session.path("bin/baton"));
    for (const [name, text] of Object.entries(files)) this.#write(name, text);
    this.blocks = blocksOfPage(page).map((block) => ({ ...block, text: replaced(block.text, replace) }));
  }

  get env(): Readonly<Record<string, string>> {
    return { ...this.session.env, PATH: `${this.session.path("bin")}:${this.session.env["PATH"]}` };
  }

  /**
   * Runs the blocks in their order. Blocks of other languages go to `others`, which returns false for those that it
   * does not know.
   */
  async runAll(others: (block: PageBlock) => boolean | Promise<boolean> = () => false): Promise<void> {
    let last: BlockRun | null = null;
    for (const block of this.blocks) {
      if (block.mark.kind === "not run") continue;
      if (await others(block)) continue;
      if (block.title !== null) this.#write(block.title, `${block.text}\n`);
      else if (block.language === "sh") last = await this.#run(block);
      else if (block.language === "text" && last !== null) await shows(last, block);
      else throw new Error(`line ${block.line}: no test knows what to do with a block of "${block.language}"`);
    }
  }

  /** Runs a command as cron does: with its environment, and nothing on the terminal. */
  cron(command: string, path: string): Promise<Ended> {
    return this.session.run(this.cronScript(command, path));
  }

  /** A script that runs a command as cron does. */
  cronScript(command: string, path: string): string {
    const { HOME = "", BATON_KEEPER_DIR = "" } = this.env;
    const line = command.replaceAll("'", "'\\''");
    return `exec env -i HOME='${HOME}' LOGNAME=reader SHELL=/bin/sh PATH='${this.session.path("bin")}:${path}' ` +
      `BATON_KEEPER_DIR='${BATON_KEEPER_DIR}' /bin/sh -c '${line}'`;
  }

  async #run({ text, line, mark }: PageBlock): Promise<BlockRun> {
    const file = this.session.path(`output${++this.#runs}`);
    const output = openSync(file, "a");
    // A file and no pipe: processes in the background may keep it open.
    const child = spawn("/bin/sh", ["-c", text], {
      cwd: this.session.folder,
      env: this.env,
      stdio: ["ignore", output, output],
      detached: true,
    });
    if (child.pid !== undefined) this.#groups.push(child.pid);
    const run = { output: () => readFileSync(file, "utf8") };
    if (mark.kind !== "run") return run;
    const code = await new Promise((resolve) => child.on("exit", resolve));
    expect(`line ${line} exits with ${code}\n${code === mark.exitCode ? "" : run.output()}`).toBe(
      `line ${line} exits with ${mark.exitCode}\n`,
    );
    return run;
  }

  #write(title: string, text: string): void {
    const path = this.session.path(ownPlaces[title] ?? (isAbsolute(title) ? basename(title) : title));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    if (text.startsWith("#!")) chmodSync(path, 0o755);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const group of this.#groups) signalGroup(group, "SIGTERM");
    for (const group of this.#groups) {
      await eventually(() => !isProcessGroupAlive(group), { withinMs: 15_000, what: `process group ${group} to end` });
    }
    await this.session[Symbol.asyncDispose]();
  }
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch {
    // It has ended.
  }
}

async function shows(run: BlockRun, { line, text }: PageBlock): Promise<void> {
  try {
    await eventually(() => showsLines(run.output(), text), { withinMs: 20_000, what: "the output" });
  } catch {
    expect(`line ${line}:\n${run.output()}`).toBe(`line ${line}:\n${text}`);
  }
}

function replaced(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((result, [from, to]) => result.replaceAll(from, to), text);
}

export interface CrontabLine {
  readonly user: string | null;
  readonly command: string;
  /** PATH of the crontab, without which cron uses /usr/bin:/bin. */
  readonly path: string;
}

/**
 * The commands of a crontab; of a file in /etc/cron.d with their users. Throws for what cron would read differently.
 */
export function crontabLines({ text, title }: PageBlock): CrontabLine[] {
  let path = "/usr/bin:/bin";
  const lines: CrontabLine[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const variable = /^(\w+)=(.*)$/.exec(line);
    if (variable?.[1] === "PATH") path = variable[2] ?? "";
    if (variable !== null) continue;
    const hasUser = title?.startsWith("/etc/cron.d/") === true;
    const [, user = null, command = ""] = (hasUser ? /^(?:\S+ +){5}(\w+) +(.*)$/ : /^(?:\S+ +){5}()(.*)$/).exec(line) ??
      [];
    if (command === "" || /(?<!\\)%/.test(command)) throw new Error(`not a line of a crontab: ${line}`);
    lines.push({ user: user === "" ? null : user, command, path });
  }
  return lines;
}
