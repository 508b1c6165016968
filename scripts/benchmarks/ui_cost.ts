/**
 * Benchmark: the processor time of `baton ui` and the bytes that it sends, with 100 changes per second and with none.
 */
import { readFileSync } from "node:fs";
import { holderNodeName } from "../../src/coordination/lock/lock_nodes.ts";
import { lockPath } from "../../src/coordination/nodes/node_paths.ts";
import { formatNewHolderNodeInfo } from "../../src/coordination/nodes/holder_info.ts";
import { newGuid } from "../../src/base/support/guid.ts";
import { parseZooKeeperServers } from "../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import { type Backend, backends } from "../../test/support/backends.ts";
import { BatonSession } from "../../test/support/baton_session.ts";
import { hasPeer } from "../../test/support/peers.ts";
import { servePage } from "../../test/support/ui_page.ts";
import { seedPage } from "../../test/support/ui_rows_seed.ts";
import { alignedTable, formatFigure } from "./statistics.ts";

const changesPerSecond = 100;
/** The first seconds, in which the runtime compiles, are not counted. */
const warmMs = 10_000;
const countedMs = 30_000;

/** Returns a table of one run on each kind of installed server. docs/guides/alerts.md describes the page. */
export async function uiCost(): Promise<string> {
  const rows = [[
    "baton ui",
    `% of a core, ${changesPerSecond} changes/s`,
    "KiB/s sent",
    "% of a core, idle",
    "KiB/min sent, idle",
  ]];
  for (const backend of backends) {
    if (backend.peer !== null && !hasPeer(backend.peer)) continue;
    rows.push([`on ${backend.name}`, ...(await measured(backend)).map(formatFigure)]);
  }
  return alignedTable(rows);
}

async function measured(backend: Backend): Promise<number[]> {
  await using stack = new AsyncDisposableStack();
  const servers = await backend.start({ sessionTimeoutMaxMs: 60_000 });
  stack.defer(() => servers.close());
  const session = stack.use(new BatonSession({ BATON_SERVERS: servers.servers }));
  const zk = stack.use(
    await connectToZooKeeper({ servers: parseZooKeeperServers(servers.servers), sessionTimeoutMs: 60_000 }),
  );
  const ids = await seedPage(zk, session.path("store"));
  const { running: { child: { pid = 0 } }, link } = await servePage(session);
  const { origin, hash } = new URL(link);
  const response = await fetch(`${origin}/stream`, {
    headers: { authorization: `Bearer ${hash.slice("#token=".length)}` },
  });
  const page = new StreamCount(response);
  await page.quiet();
  const cost = async () => {
    await Bun.sleep(warmMs);
    const ms = processorMs(pid);
    const bytes = page.bytes;
    const at = performance.now();
    await Bun.sleep(countedMs);
    const took = performance.now() - at;
    return { percent: 100 * (processorMs(pid) - ms) / took, kib: (page.bytes - bytes) / 1024 / (took / 1000) };
  };
  const idle = await cost();
  const end = new AbortController();
  const writing = keepChanging(zk, ids, end.signal);
  const busy = await cost();
  end.abort();
  await writing;
  await page.close();
  return [busy.percent, busy.kib, idle.percent, idle.kib * 60];
}

/** Gives each lock to a new holder, one lock after the other, at an even rate. */
async function keepChanging(zk: ZooKeeper, ids: ReadonlyMap<string, string>, signal: AbortSignal): Promise<void> {
  const guids = new Map(ids);
  const names = [...ids.keys()];
  const person = { user: "root", host: "db1", pid: 812, argv0: "backup.sh", reason: "" };
  const data = formatNewHolderNodeInfo(person, { timeoutMs: zk.session.timeoutMs });
  const startMs = performance.now();
  for (let made = 0; !signal.aborted;) {
    for (; made < (performance.now() - startMs) * changesPerSecond / 1000; made++) {
      const name = names[made % names.length] ?? "";
      const node = (guid: string) =>
        `${lockPath(name).holders}/${holderNodeName({ mode: "exclusive", slot: null, guid })}`;
      const old = guids.get(name) ?? "";
      const guid = newGuid();
      guids.set(name, guid);
      await zk.multi([
        { type: "delete", path: node(old), version: -1 },
        { type: "create", path: node(guid), data, acl: zk.acl, flags: 1 },
      ]);
    }
    await Bun.sleep(5);
  }
}

class StreamCount {
  bytes = 0;
  readonly #end = new AbortController();
  readonly #ended: Promise<void>;

  constructor(response: Response) {
    const count = new WritableStream<Uint8Array>({ write: (piece) => void (this.bytes += piece.byteLength) });
    this.#ended = response.body?.pipeTo(count, { signal: this.#end.signal }).catch(() => {}) ?? Promise.resolve();
  }

  /** Resolves when the first rows have arrived. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.bytes || this.bytes === 0;) {
      before = this.bytes;
      await Bun.sleep(3000);
    }
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#ended;
  }
}

/** Returns the user and system time of a process. Linux counts hundredths of a second. */
function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").replace(/^.*\) /, "").split(" ");
  return 10 * (Number(fields[11]) + Number(fields[12]));
}
