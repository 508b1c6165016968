/**
 * A real PostgreSQL with a real PgBouncer in transaction mode before it, from Debian's packages, in a folder of their
 * own.
 */
import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { eventually } from "./eventually.ts";
import { freePorts } from "./free_ports.ts";
import { ServerProcess } from "./server_process.ts";

const releases = "/usr/lib/postgresql";

/** The folder with the programs of PostgreSQL: BATON_POSTGRES_BIN, or Debian's newest; null if there is none. */
export function postgresPrograms(): string | null {
  return process.env["BATON_POSTGRES_BIN"] ?? debianPrograms();
}

/** A program of PostgreSQL. A folder may have the server alone; clients of another version then talk to it. */
export function postgresProgram(name: string): string {
  const program = join(postgresPrograms() ?? "", name);
  return existsSync(program) ? program : join(debianPrograms() ?? "", name);
}

function debianPrograms(): string | null {
  try {
    const [newest] = readdirSync(releases).toSorted((a, b) => Number(b) - Number(a));
    return newest === undefined ? null : join(releases, newest, "bin");
  } catch {
    return null;
  }
}

export class Pooler implements AsyncDisposable {
  readonly #folder: string;
  readonly #servers: readonly ServerProcess[];
  /** For clients; through PgBouncer. */
  readonly url: string;

  private constructor(folder: string, servers: readonly ServerProcess[], url: string) {
    [this.#folder, this.#servers, this.url] = [folder, servers, url];
  }

  static async start(): Promise<Pooler> {
    const folder = mkdtempSync(join(tmpdir(), "baton-pooler-"));
    const programs = postgresPrograms() ?? "";
    const [port = 0, poolerPort = 0] = await freePorts(2);
    const data = join(folder, "data");
    mkdirSync(data, { mode: 0o700 });
    giveToPostgres(folder, data);
    const asOwner = asDatabaseUser();
    const made = spawnSync(
      asOwner[0] ?? join(programs, "initdb"),
      [
        ...asOwner.slice(1),
        ...asOwner.length > 0 ? [join(programs, "initdb")] : [],
        "-D",
        data,
        "-U",
        "app",
        "-A",
        "trust",
        "-N",
      ],
      { encoding: "utf8" },
    );
    if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`);
    const postgres = [join(programs, "postgres"), "-D", data, "-p", `${port}`, "-h", "127.0.0.1", "-k", folder, "-F"];
    const servers = [
      new ServerProcess([...asOwner, ...postgres], { folder }),
      startPgBouncer(folder, {
        ...{ port: poolerPort, database: `shop = host=127.0.0.1 port=${port} dbname=postgres user=app` },
        settings: ["pool_mode = transaction"],
      }),
    ];
    const pooler = new Pooler(folder, servers, `postgresql://app@127.0.0.1:${poolerPort}/shop`);
    await eventually(async () => await pooler.query("SELECT 1") === "1", {
      withinMs: 30_000,
      everyMs: 100,
      what: "PgBouncer",
    });
    return pooler;
  }

  /** Runs SQL through PgBouncer, as a client of its own. */
  query(sql: string): Promise<string> {
    const { status, stdout, stderr } = spawnSync("psql", ["-qAtX", this.url, "-c", sql], { encoding: "utf8" });
    return status === 0 ? Promise.resolve(stdout.trim()) : Promise.reject(new Error(stderr));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.kill()));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Starts a PgBouncer whose files are in a folder. `database`: a line of its section of databases. */
export function startPgBouncer(
  folder: string,
  { port, database, settings }: {
    readonly port: number;
    readonly database: string;
    readonly settings: readonly string[];
  },
): ServerProcess {
  const file = join(folder, `pgbouncer-${port}.ini`);
  const listen = ["listen_addr = 127.0.0.1", `listen_port = ${port}`, "auth_type = any", "unix_socket_dir ="];
  writeFileSync(file, ["[databases]", database, "[pgbouncer]", ...listen, ...settings, ""].join("\n"));
  return new ServerProcess([...asDatabaseUser(), "pgbouncer", "-q", file], { folder });
}

const nobodyId = 65_534;

/** PostgreSQL and PgBouncer refuse to run as root. */
export function asDatabaseUser(): string[] {
  return process.getuid?.() === 0 ? ["setpriv", `--reuid=${nobodyId}`, `--regid=${nobodyId}`, "--clear-groups"] : [];
}

function giveToPostgres(...folders: string[]): void {
  if (process.getuid?.() !== 0) return;
  for (const folder of folders) chownSync(folder, nobodyId, nobodyId);
}
