/** The data with which a running server or proxy announces itself in its ephemeral node. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { encodeJson, parseJsonFields } from "../../base/support/json_fields.ts";
import { nullIfNoNode } from "../../coordination/nodes/node_requests.ts";

export interface ProcessAnnouncement {
  readonly id: string;
  readonly endpoint: string;
  /**
   * Identifies a resource that only one process can use at a time. For a server, it is its store at its location, so
   * that a copied store has another ID. For a proxy, it is the proxy's address.
   */
  readonly storeId: string;
  /** True while the server is being drained. It then gets no topics. False by default. */
  readonly isDraining?: boolean;
  /** The ID of the store that this server shares with other servers; undefined if only this server uses its store. */
  readonly store?: string;
}

/** The version of the layout of an announcement. */
const knownLayout = 1;

export function formatAnnouncement(
  { id, endpoint, storeId, isDraining = false, store }: ProcessAnnouncement,
): Uint8Array {
  const draining = isDraining ? { draining: true } : {};
  return encodeJson({ layout: knownLayout, id, endpoint, storeId, ...draining, store });
}

/**
 * Parses the announcement at `path`. Returns null for other data, for example while an operator's command holds the
 * server's name, and a CONFIG error for a format of a later version.
 */
export function tryParseAnnouncement(data: Uint8Array, path: string): ProcessAnnouncement | BatonError | null {
  const { layout, id, endpoint, storeId, draining, store } = parseJsonFields(data);
  if (typeof layout === "number" && layout > knownLayout) {
    const [parent, name = ""] = path.split("/").slice(-2);
    const who = `${parent === "proxies" ? "proxy" : "server"} ${JSON.stringify(typeof id === "string" ? id : name)}`;
    const what = `${who} announces itself in a format that this version does not know`;
    return new BatonError("CONFIG", `${what} (format ${layout}, known: ${knownLayout}): upgrade baton on this host`);
  }
  if (layout !== knownLayout || typeof id !== "string" || typeof endpoint !== "string" || typeof storeId !== "string") {
    return null;
  }
  return {
    id,
    endpoint,
    storeId,
    ...(draining === true ? { isDraining: true } : {}),
    ...(typeof store === "string" ? { store } : {}),
  };
}

/** Parses the announcement as `tryParseAnnouncement` does, but throws the error. */
export function parseAnnouncement(data: Uint8Array, path: string): ProcessAnnouncement | null {
  const parsed = tryParseAnnouncement(data, path);
  if (parsed instanceof BatonError) throw parsed;
  return parsed;
}

/**
 * Reads the announcement at this path. Returns null if there is none. Rejects with CONFIG for a format of a later
 * version: that process runs, and must not be treated as gone.
 */
export async function readAnnouncement(zk: ZooKeeper, path: string): Promise<ProcessAnnouncement | null> {
  const found = await nullIfNoNode(zk.getData(path));
  return found === null ? null : parseAnnouncement(found.data, path);
}

/**
 * Reads the announcements of all running servers, or of all proxies, below this node. `later` has the errors for those
 * of later versions, by the path of their node.
 */
export async function readAnnouncements(
  zk: ZooKeeper,
  parent: string,
): Promise<{ readonly known: readonly ProcessAnnouncement[]; readonly later: ReadonlyMap<string, BatonError> }> {
  const names = (await nullIfNoNode(zk.getChildren(parent)))?.children ?? [];
  const known: ProcessAnnouncement[] = [];
  const later = new Map<string, BatonError>();
  await Promise.all(names.map(async (name) => {
    const path = `${parent}/${name}`;
    const read = await nullIfNoNode(zk.getData(path));
    const parsed = read === null ? null : tryParseAnnouncement(read.data, path);
    if (parsed instanceof BatonError) later.set(path, parsed);
    else if (parsed !== null) known.push(parsed);
  }));
  return { known, later };
}
