/**
 * The programs of another PostgreSQL than Debian's, unpacked from the jar that scripts/install_peers has fetched. They
 * lack psql and pg_basebackup.
 */
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { postgresJar, type PostgresRelease } from "./peers.ts";

const execute = promisify(execFile);
/** Time to unpack 15 MB into 57 MB, in milliseconds. */
const unpackMsMax = 60_000;

export class UnpackedPostgres implements Disposable {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async of(release: PostgresRelease): Promise<UnpackedPostgres> {
    const unpacked = new UnpackedPostgres(mkdtempSync(join(tmpdir(), `baton-postgres-${release}-`)));
    try {
      chmodSync(unpacked.#folder, 0o755); // the servers run as another user
      const archive = join(unpacked.#folder, "postgres.txz");
      const script = 'unzip -qp "$1" "*.txz" >"$2" && tar -xJf "$2" -C "$3" && rm "$2"';
      const args = ["-c", script, "sh", postgresJar(release), archive, unpacked.#folder];
      await execute("sh", args, { timeout: unpackMsMax });
      return unpacked;
    } catch (error) {
      unpacked[Symbol.dispose]();
      throw error;
    }
  }

  /** For BATON_POSTGRES_BIN. */
  get programs(): string {
    return join(this.#folder, "bin");
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
