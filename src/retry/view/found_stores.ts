/** Finds the message stores of this user and machine, keeps them open, and reads their rows. */
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { ConfigSources } from "../../base/config/resolve_settings.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import { errorMessage } from "../../base/errors.ts";
import type { StoreRow } from "../../base/rows/store_row.ts";
import type { StoreLocation } from "../queue/open_retry_store.ts";
import { readStoreLocation } from "../queue/retry_store_location.ts";
import type { CommandStore } from "../queue/store_methods.ts";
import type { retryStoreSettings } from "../settings/retry_settings.ts";

/** The part of a command call that names message stores. */
export interface StoresCall {
  readonly values: SettingValues<Pick<typeof retryStoreSettings, "retryName" | "retryStore">>;
  readonly sources: ConfigSources;
}

export interface FoundStore {
  readonly name: string;
  readonly store: CommandStore;
}

export class FoundStores implements AsyncDisposable {
  readonly #call: StoresCall;
  readonly #stores = new Map<string, FoundStore>();

  /** Reads which stores the call names. Throws USAGE or CONFIG for an invalid store name. */
  constructor(call: StoresCall) {
    this.#call = call;
    if (isStoreNamed(call)) readStoreLocation(call.values, call.sources);
  }

  /**
   * Reads the rows of all stores. A store that cannot be read becomes a problem in the result, so this never rejects.
   */
  async read(): Promise<{ readonly rows: readonly StoreRow[]; readonly problems: readonly string[] }> {
    const rows: StoreRow[] = [];
    const problems: string[] = [];
    for (const location of await storesOf(this.#call)) {
      const { where } = location;
      try {
        rows.push(await this.#read(location));
      } catch (thrown) {
        await this.#stores.get(where)?.store[Symbol.asyncDispose]();
        this.#stores.delete(where);
        problems.push(errorMessage(thrown));
      }
    }
    return { rows, problems };
  }

  /** Returns the store that the last reading found in this folder; null if there was none. */
  at(folder: string): FoundStore | null {
    return this.#stores.get(folder) ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { store } of this.#stores.values()) await store[Symbol.asyncDispose]();
    this.#stores.clear();
  }

  async #read(location: StoreLocation): Promise<StoreRow> {
    const { name, where } = location;
    // The code of stores is loaded only if a store exists.
    const { openCommandStore } = await import("../queue/open_retry_store.ts");
    const { readStoreRow } = await import("./store_rows.ts");
    const store = this.#stores.get(where)?.store ?? await openCommandStore(location, { mustExist: true });
    this.#stores.set(where, { name, store });
    return await readStoreRow(store, location);
  }
}

const isStoreNamed = ({ sources: { flags } }: StoresCall) => flags.has("retryName") || flags.has("retryStore");

/**
 * Returns the store that --store or --name names; if neither is given, the configured store and all stores beside it.
 */
async function storesOf(call: StoresCall): Promise<StoreLocation[]> {
  const { values, sources } = call;
  if (isStoreNamed(call)) return [readStoreLocation(values, sources)];
  try {
    const configured = readStoreLocation(values, sources);
    if (configured.folder === null) return [configured];
    const parent = dirname(configured.folder);
    const beside = values.retryStore === undefined ? foldersIn(parent) : [basename(configured.folder)];
    const names = beside.filter((name) => existsSync(join(parent, name)));
    if (names.length === 0) return [];
    const { retryDatabaseFileName } = await import("../queue/sqlite/retry_database.ts");
    return names.map((name) => ({ name, folder: join(parent, name) }))
      .filter(({ folder }) => existsSync(join(folder, retryDatabaseFileName)))
      .map(({ name, folder }) => ({
        name: values.retryStore === undefined ? name : configured.name,
        folder,
        where: folder,
        database: null,
      }));
  } catch {
    return []; // this user has no home directory, and therefore no stores
  }
}

function foldersIn(parent: string): string[] {
  try {
    return readdirSync(parent).sort();
  } catch {
    return [];
  }
}
