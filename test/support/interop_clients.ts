/**
 * Other people's clients of ZooKeeper's protocol as they come from Debian, run against a server: zkCli.sh, kazoo,
 * Curator. Their programs are in test/fixtures/interop; each prints one line per recipe.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { curatorJars, currentCuratorJars, zkCli } from "./peers.ts";

const fixtures = join(import.meta.dirname, "../fixtures/interop");
const endsMsMax = 90_000;
/** Debian's, where its packages are: another one may stand before it in PATH. */
export const python = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
/** Starts fast and stays small; peak speed is nobody's question here. */
const jvmOptions = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"];

const execute = promisify(execFile);

/** What it wrote to stdout and to stderr; rejects, with both, when it does not end well or in time. */
async function outputOf(
  command: readonly string[],
  { input, env = process.env }: { readonly input?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<{ stdout: string; stderr: string }> {
  const [program = "", ...args] = command;
  const running = execute(program, args, { timeout: endsMsMax, maxBuffer: 1 << 24, env });
  running.child.stdin?.end(input ?? "");
  return await running;
}

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "");

/**
 * One line per recipe, at `path` and numbers behind it. `servers` is host:port; `wheel` a release of kazoo, Debian's
 * when left out.
 */
export async function runKazooRecipes(servers: string, path: string, wheel?: string): Promise<string[]> {
  const env = wheel === undefined ? process.env : { ...process.env, PYTHONPATH: wheel };
  return linesOf((await outputOf([python, join(fixtures, "kazoo_recipes.py"), servers, path], { env })).stdout);
}

/** Compiled programs of Curator; the folder is the caller's to remove by `close`. */
export class CuratorPrograms {
  readonly #folder: string;
  readonly #classPath: string;

  private constructor(folder: string, jars: readonly string[]) {
    this.#folder = folder;
    this.#classPath = [folder, ...jars].join(delimiter);
  }

  /** With Debian's Curator. */
  static compile(...names: readonly string[]): Promise<CuratorPrograms> {
    return CuratorPrograms.#compile(curatorJars, names);
  }

  /** With the current Curator. */
  static compileCurrent(...names: readonly string[]): Promise<CuratorPrograms> {
    return CuratorPrograms.#compile(currentCuratorJars, names);
  }

  static async #compile(jars: readonly string[], names: readonly string[]): Promise<CuratorPrograms> {
    const folder = mkdtempSync(join(tmpdir(), "baton-curator-"));
    const sources = names.map((name) => join(fixtures, `${name}.java`));
    const programs = new CuratorPrograms(folder, jars);
    await outputOf(["javac", "-Xlint:-options", "-d", folder, "-cp", programs.#classPath, ...sources]);
    return programs;
  }

  command(name: string, ...args: readonly string[]): string[] {
    return ["java", ...jvmOptions, "-cp", this.#classPath, name, ...args];
  }

  async run(name: string, ...args: readonly string[]): Promise<string[]> {
    return linesOf((await outputOf(this.command(name, ...args))).stdout);
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/**
 * What zkCli.sh makes of the commands in zkcli_commands.txt: the lines of its two outputs, with events apart because
 * its threads print them when they come, and without what is another each time.
 */
export async function runZkCli(servers: string): Promise<{ answers: string[]; messages: string[]; events: string[] }> {
  const commands = readFileSync(join(fixtures, "zkcli_commands.txt"), "utf8");
  const { stdout, stderr } = await outputOf([zkCli, "-server", servers], { input: commands });
  const answers = linesOf(stdout).map(withoutChance);
  const isEvent = (line: string) => line.startsWith("WatchedEvent");
  return {
    answers: answers.filter((line) => !isEvent(line) && line !== "WATCHER::"),
    messages: linesOf(stderr).filter((line) => !line.startsWith("SLF4J:")).map(withoutChance),
    // Of its own end it tells when there is time left for it.
    events: answers.filter((line) => isEvent(line) && !line.includes("state:Closed")).sort(),
  };
}

function withoutChance(line: string): string {
  if (/^\[.*\]$/.test(line)) return `[${line.slice(1, -1).split(", ").sort().join(", ")}]`;
  return line
    .replace(/^(Connecting to ).*/, "$1SERVER")
    .replace(/^((?:c|m|p)Zxid = )0x.*/, "$1ZXID")
    .replace(/^((?:c|m)time = ).*/, "$1TIME")
    .replace(/^(ZooKeeper CLI version: ).*/, "$1VERSION");
}
