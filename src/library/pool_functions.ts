/**
 * Provides pools: a process works on the free items of a list, several at a time, each under the lock of the item.
 * Other processes with the same list, and `baton pool`, share the items.
 */
import { BatonError, errorMessage } from "../base/errors.ts";
import type { Lease } from "../base/process/lease.ts";
import { encodeLockName } from "../coordination/nodes/node_paths.ts";
import { runPool as runPoolAt } from "../coordination/pool/run_pool_items.ts";
import type { PoolItemCounts } from "../coordination/pool/work_list.ts";
import {
  itemLockName,
  poolItemsMax,
  type PoolPath,
  poolPath,
  type PoolPathTemplates,
} from "../coordination/pool/pool_path.ts";
import type { PoolJob, PoolJobEnd } from "../coordination/pool/pool_run_options.ts";
import {
  checkArgument,
  countForm,
  functionForm,
  millisecondsForm,
  type OptionForms,
  retriesForm,
  textForm,
  textsForm,
  toggleForm,
  waitForm,
} from "./check_arguments.ts";
import type { Held } from "./held_lease.ts";
import { findNamedSession, ownInfo, requestForms, type ServerOptions } from "./session.ts";

export interface PoolOptions extends ServerOptions {
  /** How many items this run works on at a time; by default 1. */
  readonly jobs?: number | undefined;
  /**
   * How many items run at a time in all processes together; by default there is no limit. All processes must give the
   * same number.
   */
  readonly total?: number | undefined;
  /**
   * If true, the run takes another item when one has ended, and requests the list again while there are items. If
   * false, the run takes at most `jobs` items, once. The default is true for a list of items, and false for a function.
   */
  readonly loop?: boolean | undefined;
  /**
   * How many times the work of an item is retried if it fails; by default 0. Retries begin immediately, under the same
   * lock.
   */
  readonly retries?: number | undefined;
  /**
   * How long the result of an item is kept, in milliseconds; by default it is not kept. An item that is done is not run
   * again in this time.
   */
  readonly doneTtlMs?: number | undefined;
  /**
   * How long to wait while another run chooses items: milliseconds, "none", or "forever"; by default 5 minutes. If
   * `loop` is true, this is also how long to wait for a permit of `total`; by default forever.
   */
  readonly wait?: "none" | "forever" | number | undefined;
  /** When the signal aborts, the run starts no new items, and finishes the items that run. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Templates of paths, which must be the same in all processes; see pool.component_path and pool.item_path in the
   * configuration.
   */
  readonly templates?: PoolPathTemplates | undefined;
  /** The purpose in a few words, which `baton who` shows. */
  readonly reason?: string | undefined;
  /** Called each time that the work of an item has failed. */
  readonly onFailed?: ((item: string, thrown: unknown) => void) | undefined;
  /** Called for a problem that does not stop the run, which is a result that could not be stored. */
  readonly onProblem?: ((thrown: unknown) => void) | undefined;
}

/** A lock as the work sees it: the lock under which items are chosen, or the lock of an item. */
export type PoolLock = Pick<Held, "name" | "token" | "signal" | "isHeld">;

export interface PoolItem extends PoolLock {
  /** The number of the try, from 1. */
  readonly attempt: number;
}

/**
 * The items in their order, or a function that lists the items while other runs wait. If `loop` is true, the function
 * is called repeatedly.
 */
export type PoolItems = readonly string[] | ((chooser: PoolLock) => readonly string[] | Promise<readonly string[]>);

/**
 * Works on an item. The item is done if the work resolves, and has failed if the work rejects. The work must stop when
 * `held.signal` aborts.
 */
export type PoolWork = (item: string, held: PoolItem) => Promise<unknown> | unknown;

const runForms: OptionForms<PoolOptions> = {
  ...requestForms,
  jobs: countForm,
  total: countForm,
  loop: toggleForm,
  retries: retriesForm,
  doneTtlMs: millisecondsForm,
  wait: waitForm("none", "forever"),
  templates: {
    expected: "an object with the templates component and item",
    fits: (value) => {
      const { component, item } = (value ?? {}) as Partial<PoolPathTemplates>;
      return textForm.fits(component) && textForm.fits(item);
    },
  },
  reason: textForm,
  onFailed: functionForm,
  onProblem: functionForm,
};

/** How long to wait while another run chooses items, in milliseconds. `baton pool` has the same default. */
const choosingMsMax = 300_000;

/**
 * Works on items until none is left, and returns the counts. Rejects with LOCK_BUSY or LOCK_TIMEOUT while another run
 * chooses items, LIMIT_MISMATCH or CONFIG if other runs give another `total` or other `templates`, BAD_DATA for an
 * invalid item, SESSION_EXPIRED or UNREACHABLE. Also rejects with a failure of the list, or with the signal's reason if
 * it aborted before the start.
 */
export async function runPool(
  component: string,
  items: PoolItems,
  work: PoolWork,
  options: PoolOptions = {},
): Promise<PoolItemCounts> {
  checkArgument("runPool", "items", items, itemsForm);
  checkArgument("runPool", "the work", work, functionForm);
  const session = findNamedSession("runPool", { kind: "a component", name: component }, options, runForms);
  const { jobs = 1, total, loop = typeof items !== "function", retries = 0, doneTtlMs } = options;
  const { templates, wait, onFailed, onProblem = () => {} } = options;
  const pathAt = (root?: string) => poolPath(component, { root, ...(templates === undefined ? {} : { templates }) });
  pathAt(); // throws if the templates are invalid
  return await session.call(`run pool "${component}"`, options, async ({ zk, root, clock, waiting }) => {
    const path = pathAt(root);
    return await runPoolAt(zk, component, {
      path,
      jobs,
      total: total ?? null,
      loop,
      retries,
      rememberMs: doneTtlMs ?? null,
      wait: wait ?? { whileChoosingMs: choosingMsMax },
      list: async (chooser) => checkItems(typeof items === "function" ? await items(lockOf(chooser)) : items, path),
      listsAgain: typeof items === "function",
      run: (job) => runItem(job, work, onFailed),
      stop: session.stopSignal(options.signal),
      limit: waiting.signal,
      onProblem,
      info: ownInfo(options.reason),
      clock,
    });
  });

  function checkItems(listed: readonly string[], path: PoolPath): readonly string[] {
    checkArgument("runPool", typeof items === "function" ? "items()" : "items", listed, textsForm);
    if (listed.length > poolItemsMax) {
      throw new BatonError("BAD_DATA", `A list of ${listed.length} items is too long: the maximum is ${poolItemsMax}`);
    }
    for (const item of listed) {
      try {
        encodeLockName(itemLockName(component, item), "an item's lock");
        path.item(item);
      } catch (cause) {
        throw new BatonError("BAD_DATA", errorMessage(cause), { cause });
      }
    }
    return listed;
  }
}

const itemsForm = {
  ...textsForm,
  expected: "an array of texts, or a function that returns one",
  fits: (value: unknown) => typeof value === "function" || textsForm.fits(value),
};

const whatCharsMax = 200;

async function runItem(
  { item, itemLease, lease, attempt }: PoolJob,
  work: PoolWork,
  onFailed: PoolOptions["onFailed"],
): Promise<PoolJobEnd> {
  const end = { mayRetry: true, stopsPool: false, keepsLock: false } as const;
  try {
    await work(item, { ...lockOf(lease), token: itemLease.fencingToken, attempt });
    return { ...end, result: "done", what: "done" };
  } catch (thrown) {
    onFailed?.(item, thrown);
    return { ...end, result: "failed", what: `failed: ${errorMessage(thrown)}`.slice(0, whatCharsMax) };
  }
}

function lockOf(lease: Lease): PoolLock {
  return { name: lease.name, token: lease.fencingToken, signal: lease.lost, isHeld: () => lease.isHeld() };
}
