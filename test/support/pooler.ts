/** A real PostgreSQL with a real PgBouncer in transaction mode before it, from Debian's packages, in a folder of their own. */
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
    writeFileSync(
      join(folder, "pgbouncer.ini"),
      [
        "[databases]",
        `shop = host=127.0.0.1 port=${port} dbname=postgres user=app`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        `listen_port = ${poolerPort}`,
        "auth_type = any",
        "pool_mode = transaction",
        "unix_socket_dir =",
        "",
      ].join("\n"),
    );
    const servers = [
      new ServerProcess([...asOwner, ...postgres], { folder }),
      new ServerProcess([...asOwner, "pgbouncer", "-q", join(folder, "pgbouncer.ini")], { folder }),
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

const nobodyId = 65_534;

/** PostgreSQL and PgBouncer refuse to run as root. */
export function asDatabaseUser(): string[] {
  return process.getuid?.() === 0 ? ["setpriv", `--reuid=${nobodyId}`, `--regid=${nobodyId}`, "--clear-groups"] : [];
}

function giveToPostgres(...folders: string[]): void {
  if (process.getuid?.() !== 0) return;
  for (const folder of folders) chownSync(folder, nobodyId, nobodyId);
}
