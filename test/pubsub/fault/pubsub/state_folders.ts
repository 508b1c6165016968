/** Client states while nobody has them open: copied, restored, lost. */
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** What SQLite keeps of one database. */
const suffixes = [".sqlite", ".sqlite-wal", ".sqlite-shm"];

export class StateFolders {
  readonly #folder: string;
  readonly #copies = new Map<string, number>();

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  /** Keeps the client's state as it is now. */
  keep(stateDir: string, client: string): void {
    const count = (this.#copies.get(client) ?? 0) + 1;
    this.#copies.set(client, count);
    const place = join(this.#folder, nameOf(client), String(count));
    mkdirSync(place, { recursive: true });
    copyState(stateDir, place, client);
  }

  /** Puts back a state that was kept; `chance` from 0 (the oldest) up to 1. False: none was. */
  restore(stateDir: string, client: string, chance: number): boolean {
    const count = this.#copies.get(client) ?? 0;
    if (count === 0) return false;
    this.lose(stateDir, client);
    copyState(join(this.#folder, nameOf(client), String(1 + Math.floor(chance * count))), stateDir, client);
    return true;
  }

  lose(stateDir: string, client: string): void {
    for (const suffix of suffixes) rmSync(join(stateDir, nameOf(client) + suffix), { force: true });
  }

  /** All states of a folder, for another process. */
  copyAll(stateDir: string, to: string): void {
    cpSync(stateDir, to, { recursive: true });
  }
}

function copyState(from: string, to: string, client: string): void {
  for (const suffix of suffixes) {
    const name = nameOf(client) + suffix;
    if (existsSync(join(from, name))) copyFileSync(join(from, name), join(to, name));
  }
}

/** As client_state.ts names its files. */
function nameOf(client: string): string {
  return createHash("sha256").update(client).digest("hex");
}
