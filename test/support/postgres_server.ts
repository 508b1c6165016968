/**
 * A real PostgreSQL server of a test, from Debian's packages or BATON_POSTGRES_BIN: on a Unix socket and on 127.0.0.1,
 * in a folder of its own, run by an unprivileged user. `standby` starts a copy that receives the log; `promote` makes
 * it the primary.
 */
import { execFile } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { eventually } from "./eventually.ts";
import { freePorts } from "./free_ports.ts";
import { asDatabaseUser, postgresProgram } from "./pooler.ts";
import { ServerProcess } from "./server_process.ts";

const execute = promisify(execFile);
const waitForStandby = "synchronous_standby_names = 'standby'";
/** Time for a command of PostgreSQL, in milliseconds. */
const commandMsMax = 60_000;

export interface PostgresServerOptions {
  /** Lines of postgresql.conf. */
  readonly settings?: readonly string[];
  /** PEM files; connections over TCP may then use TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** The password of the user `baton`, which is then asked for on TCP. */
  readonly password?: string;
  /** Contains the folder of the server: a disk of its own. */
  readonly parent?: string;
}

export class PostgresServer implements AsyncDisposable {
  readonly port: number;
  /** Contains the Unix socket. */
  readonly folder: string;
  readonly #data: string;
  #process: ServerProcess | null = null;

  private constructor(folder: string, port: number) {
    [this.folder, this.port, this.#data] = [folder, port, join(folder, "data")];
  }

  static async start({ settings = [], tls, password, parent }: PostgresServerOptions = {}): Promise<PostgresServer> {
    const server = await PostgresServer.#inFolder(parent);
    const authentication = password === undefined ? "trust" : "scram-sha-256";
    try {
      await server.#command("initdb", "-D", server.#data, "-U", "baton", "-A", "trust", "-N", "-k", "--no-sync");
      writeFileSync(
        join(server.#data, "pg_hba.conf"),
        ["local all all trust", "local replication all trust", `host all all 127.0.0.1/32 ${authentication}`, ""].join(
          "\n",
        ),
      );
      if (tls !== undefined) {
        for (const [from, to] of [[tls.cert, "server.crt"], [tls.key, "server.key"]] as const) {
          copyFileSync(from, join(server.#data, to));
          chmodSync(join(server.#data, to), 0o600);
          giveAway(join(server.#data, to));
        }
      }
      // Before version 14 the default is md5.
      server.configure(...tls === undefined ? [] : ["ssl = on"], "password_encryption = 'scram-sha-256'", ...settings);
      await server.resume();
      if (password !== undefined) await server.sql(`ALTER ROLE baton PASSWORD '${password}'`);
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  static async #inFolder(parent = tmpdir()): Promise<PostgresServer> {
    const folder = mkdtempSync(join(parent, "baton-postgres-"));
    const [port = 0] = await freePorts(1);
    const server = new PostgresServer(folder, port);
    chmodSync(folder, 0o755); // clients are other users
    mkdirSync(server.#data, { mode: 0o700 });
    giveAway(folder);
    giveAway(server.#data);
    return server;
  }

  /** Over the Unix socket. */
  get url(): string {
    return `postgres://baton@${encodeURIComponent(`${this.folder}:${this.port}`)}/postgres`;
  }

  get tcpUrl(): string {
    return `postgres://baton@127.0.0.1:${this.port}/postgres`;
  }

  get isRunning(): boolean {
    return this.#process?.alive ?? false;
  }

  /** Its processes: the first one has started the others. */
  get pids(): number[] {
    return [this.#process?.pid ?? -1, ...this.#children()];
  }

  /** The end of its log. */
  get log(): string {
    return this.#process?.output ?? "";
  }

  /** Adds lines to postgresql.conf; they apply after `reload` or the next start. */
  configure(...lines: string[]): void {
    appendFileSync(join(this.#data, "postgresql.conf"), lines.map((line) => `${line}\n`).join(""));
  }

  async reload(): Promise<void> {
    await this.#command("pg_ctl", "reload", "-D", this.#data);
  }

  /** Starts it again after `kill` or `stop`. */
  async resume(): Promise<void> {
    const listen = ["-p", `${this.port}`, "-h", "127.0.0.1", "-k", this.folder];
    this.#process = new ServerProcess(
      [...asDatabaseUser(), postgresProgram("postgres"), "-D", this.#data, ...listen],
      { folder: this.folder },
    );
    await eventually(async () => {
      if (this.#process?.lastWords) throw new Error(this.#process.lastWords);
      return await this.sql("SELECT 1") === "1";
    }, { withinMs: 30_000, everyMs: 50, what: "PostgreSQL" });
  }

  /** SIGKILL to all its processes: the server recovers from its log at the next start. */
  async kill(): Promise<void> {
    const children = this.#children();
    await this.#process?.kill();
    for (const pid of children) sendSignal(pid, "SIGKILL");
    await eventually(() => children.every((pid) => hasEnded(pid)), { what: "the end of PostgreSQL" });
    rmSync(join(this.#data, "postmaster.pid"), { force: true });
  }

  /** Copies the files of a server that is stopped. `returnToCopy` starts it with them, as after a restored snapshot. */
  async copyData(): Promise<void> {
    await execute("cp", ["-a", this.#data, `${this.#data}.copy`]);
  }

  async returnToCopy(): Promise<void> {
    rmSync(this.#data, { recursive: true });
    await execute("mv", [`${this.#data}.copy`, this.#data]);
    await this.resume();
  }

  /** SIGINT: connections are ended, and the log is complete. */
  async stop(): Promise<void> {
    this.#process?.signal("SIGINT");
    await this.#process?.exited;
  }

  /** Stops (SIGSTOP) or continues all its processes. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#process?.signal(signal);
    for (const pid of this.#children()) sendSignal(pid, signal);
  }

  /** The processes that the server has started. Each is in a process group of its own. */
  #children(): number[] {
    const pid = this.#process?.alive ? this.#process.pid : null;
    return pid === null
      ? []
      : readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").filter(Boolean).map(Number);
  }

  /** Runs SQL as the owner of the cluster, over the Unix socket. */
  async sql(text: string, database = "postgres"): Promise<string> {
    const options = ["-qAtX", "-v", "ON_ERROR_STOP=1", "-h", this.folder, "-p", `${this.port}`, "-U", "baton"];
    const { stdout } = await execute("psql", [...options, "-d", database, "-c", text], { timeout: commandMsMax });
    return stdout.trim();
  }

  /**
   * Starts a standby. With `isSynchronous` the primary then waits for it at each commit; its name is `standby`.
   */
  async standby(
    { isSynchronous, parent }: { readonly isSynchronous: boolean; readonly parent?: string },
  ): Promise<PostgresServer> {
    const copy = await PostgresServer.#inFolder(parent);
    try {
      const source = `host=${this.folder} port=${this.port} user=baton application_name=standby`;
      await copy.#command("pg_basebackup", "-w", "-c", "fast", "-D", copy.#data, "-d", source);
      // Not -R: a pg_basebackup that is newer than the server writes parameters that the server does not know.
      appendFileSync(join(copy.#data, "postgresql.auto.conf"), `primary_conninfo = '${source}'\n`);
      writeFileSync(join(copy.#data, "standby.signal"), "");
      giveAway(join(copy.#data, "standby.signal"));
      await copy.resume();
      if (isSynchronous) {
        this.configure(waitForStandby);
        await this.reload();
        await eventually(
          async () => await this.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") === "1",
          { withinMs: 30_000, everyMs: 50, what: "the synchronous standby" },
        );
      }
      return copy;
    } catch (error) {
      await copy[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * Makes this standby a primary. With `waitsForStandby` it commits nothing before it has a synchronous standby of its
   * own.
   */
  async promote({ waitsForStandby = false } = {}): Promise<void> {
    this.configure(waitsForStandby ? waitForStandby : "synchronous_standby_names = ''");
    await this.#command("pg_ctl", "promote", "-w", "-D", this.#data);
    await this.reload();
  }

  /** This standby receives nothing from its primary from now on. */
  async detach(): Promise<void> {
    await this.sql("ALTER SYSTEM SET primary_conninfo = ''");
    await this.reload();
    await eventually(async () => await this.sql("SELECT count(*) FROM pg_stat_wal_receiver") === "0", {
      withinMs: 30_000,
      everyMs: 20,
      what: "the standby to receive nothing",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #command(program: string, ...args: string[]): Promise<void> {
    const [first = "", ...rest] = [...asDatabaseUser(), postgresProgram(program), ...args];
    await execute(first, rest, { timeout: commandMsMax, cwd: this.folder });
  }
}

/** Makes a file the property of the user that the servers run as. */
function giveAway(path: string): void {
  const [, user] = /--reuid=(\d+)/.exec(asDatabaseUser().join(" ")) ?? [];
  if (user !== undefined && process.getuid?.() === 0) chownSync(path, Number(user), Number(user));
}

/** A process whose parent has ended may stay as a zombie: whoever has adopted it need not look after it. */
function hasEnded(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch {
    return true;
  }
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
