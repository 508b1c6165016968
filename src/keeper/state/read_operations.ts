/** The operations that change no node: reads and watches. Source: FinalRequestProcessor, DataTree. */
import { eventType, permission, type RequestOf, type ResponseOf } from "../../wire/jute/zookeeper_operations.ts";
import { checkAcl, type Identity, maskDigests, permits } from "./acl_check.ts";
import type { KeeperLimits } from "./keeper_limits.ts";
import { refuse } from "./operation_error.ts";
import type { Session } from "./session_table.ts";
import { statOf, type Tree, type ZNode } from "./tree.ts";
import { watchMode, type WatchTable } from "./watch_table.ts";

/** The part of the state that is read, and the watches that reading leaves. */
export interface ReadState {
  readonly tree: Tree;
  readonly watches: WatchTable<unknown>;
  readonly limits: KeeperLimits;
  tell(watcher: unknown, type: number, path: string): void;
}

export interface ReadAsker {
  readonly session: Session;
  readonly identities: readonly Identity[];
  readonly watcher: unknown;
}

export function exists(
  { path, watch }: RequestOf<"exists">,
  state: ReadState,
  asker: ReadAsker,
): ResponseOf<"exists"> {
  if (path.includes("\0")) refuse("BADARGUMENTS");
  const node = state.tree.get(path);
  if (node !== undefined) checkAcl(node.acl, permission.read, asker.identities);
  if (watch) watchData(path, state, asker);
  return { stat: statOf(node ?? refuse("NONODE")) };
}

export function getData(
  { path, watch }: RequestOf<"getData">,
  state: ReadState,
  asker: ReadAsker,
): ResponseOf<"getData"> {
  const node = readable(path, state, asker);
  if (watch) watchData(path, state, asker);
  return { data: node.data, stat: statOf(node) };
}

export function getChildren(
  { path, watch }: RequestOf<"getChildren2">,
  state: ReadState,
  asker: ReadAsker,
): ResponseOf<"getChildren2"> {
  const node = readable(path, state, asker);
  if (watch) {
    roomForWatch(path, 1, state, asker);
    state.watches.children.add(path || "/", asker.watcher, watchMode.once);
  }
  return { children: node.children === null ? [] : [...node.children], stat: statOf(node) };
}

export function getAcl({ path }: RequestOf<"getAcl">, state: ReadState, asker: ReadAsker): ResponseOf<"getAcl"> {
  const node = state.tree.get(path) ?? refuse("NONODE");
  checkAcl(node.acl, permission.read | permission.admin, asker.identities);
  const open = permits(node.acl, permission.admin, asker.identities);
  return { acl: open ? [...node.acl] : maskDigests(node.acl), stat: statOf(node) };
}

export function getAllChildrenNumber(
  { path }: RequestOf<"getAllChildrenNumber">,
  state: ReadState,
  asker: ReadAsker,
): ResponseOf<"getAllChildrenNumber"> {
  return { totalNumber: state.tree.descendantCount(readable(path, state, asker)) };
}

export function getEphemerals(
  { prefixPath }: RequestOf<"getEphemerals">,
  state: ReadState,
  asker: ReadAsker,
): ResponseOf<"getEphemerals"> {
  const paths = [...state.tree.ephemeralsOf(asker.session.id)].map((node) => node.path);
  return { ephemerals: paths.filter((path) => path.startsWith(prefixPath)) };
}

export function whoAmI(_: RequestOf<"whoAmI">, _state: ReadState, asker: ReadAsker): ResponseOf<"whoAmI"> {
  const user = ({ scheme, id }: Identity) => scheme === "digest" ? id.slice(0, id.indexOf(":")) : id;
  return { clientInfo: asker.identities.map((identity) => ({ authScheme: identity.scheme, user: user(identity) })) };
}

export function addWatch(
  { path, mode }: RequestOf<"addWatch">,
  state: ReadState,
  asker: ReadAsker,
): ResponseOf<"addWatch"> {
  if (mode !== 0 && mode !== 1) refuse("MARSHALLINGERROR");
  roomForWatch(path, 2, state, asker);
  state.watches.addPersistent(path || "/", asker.watcher, mode === 0 ? watchMode.persistent : watchMode.recursive);
  return { err: 0 };
}

/** WatcherType */
const watcherType = { children: 1, data: 2, any: 3 } as const;
const watcherTypes: ReadonlySet<number> = new Set(Object.values(watcherType));

/** A persistent watch is of data and of children: a removal by one of these kinds must not leave half of it. */
function modesOf(type: number): number | undefined {
  return type === watcherType.any ? undefined : watchMode.once;
}

export function checkWatches(
  { path, type }: RequestOf<"checkWatches">,
  state: ReadState,
  asker: ReadAsker,
): ResponseOf<"checkWatches"> {
  if (!watcherTypes.has(type)) refuse("MARSHALLINGERROR");
  const { data, children } = state.watches;
  const modes = modesOf(type);
  const found = type !== watcherType.children && data.has(path, asker.watcher, modes) ||
    type !== watcherType.data && children.has(path, asker.watcher, modes);
  return found ? {} : refuse("NOWATCHER");
}

export function removeWatches(
  { path, type }: RequestOf<"removeWatches">,
  state: ReadState,
  asker: ReadAsker,
): ResponseOf<"removeWatches"> {
  if (!watcherTypes.has(type)) refuse("MARSHALLINGERROR");
  const { data, children } = state.watches;
  const modes = modesOf(type);
  const ofData = type !== watcherType.children && data.remove(path, asker.watcher, modes);
  const ofChildren = type !== watcherType.data && children.remove(path, asker.watcher, modes);
  return ofData || ofChildren ? {} : refuse("NOWATCHER");
}

/**
 * Sets a client's watches again after a reconnect; the client is notified immediately of what happened since its last zxid.
 * What happened to a node that it may not read is not told, here either: the watch is set instead.
 */
export function setWatches(
  request: RequestOf<"setWatches2">,
  state: ReadState,
  asker: ReadAsker,
): ResponseOf<"setWatches2"> {
  const { tree, watches } = state;
  const { watcher } = asker;
  const mayRead = (node: ZNode) => permits(node.acl, permission.read, asker.identities);
  const lists = [request.dataWatches, request.existWatches, request.childWatches];
  const persistent = [request.persistentWatches, request.persistentRecursiveWatches];
  const count = [...lists, ...persistent, ...persistent].reduce((sum, list) => sum + (list?.length ?? 0), 0);
  const longest = [...lists, ...persistent].flatMap((list) => list ?? []).reduce(
    (a, b) => a.length > b.length ? a : b,
    "",
  );
  if (count > state.limits.watchesTogetherMax) refuse("BADARGUMENTS");
  roomForWatch(longest, count, state, asker);
  for (const path of request.dataWatches ?? []) {
    const node = tree.get(path);
    if (node === undefined) state.tell(watcher, eventType.deleted, path);
    else if (node.mzxid > request.relativeZxid && mayRead(node)) state.tell(watcher, eventType.dataChanged, path);
    else watches.data.add(path, watcher, watchMode.once);
  }
  for (const path of request.existWatches ?? []) {
    const node = tree.get(path);
    if (node !== undefined && mayRead(node)) state.tell(watcher, eventType.created, path);
    else watches.data.add(path, watcher, watchMode.once);
  }
  for (const path of request.childWatches ?? []) {
    const node = tree.get(path);
    if (node === undefined) state.tell(watcher, eventType.deleted, path);
    else if (node.pzxid > request.relativeZxid && mayRead(node)) state.tell(watcher, eventType.childrenChanged, path);
    else watches.children.add(path, watcher, watchMode.once);
  }
  for (const path of request.persistentWatches ?? []) watches.addPersistent(path, watcher, watchMode.persistent);
  for (const path of request.persistentRecursiveWatches ?? []) {
    watches.addPersistent(path, watcher, watchMode.recursive);
  }
  return {};
}

function readable(path: string, state: ReadState, asker: ReadAsker): ZNode {
  const node = state.tree.get(path) ?? refuse("NONODE");
  checkAcl(node.acl, permission.read, asker.identities);
  return node;
}

function watchData(path: string, state: ReadState, asker: ReadAsker): void {
  roomForWatch(path, 1, state, asker);
  state.watches.data.add(path || "/", asker.watcher, watchMode.once);
}

function roomForWatch(path: string, more: number, { watches, limits }: ReadState, { watcher }: ReadAsker): void {
  if (path.length > limits.pathCharsMax) refuse("BADARGUMENTS");
  if (watches.count + more > limits.watchesMax) refuse("QUOTAEXCEEDED");
  if (watches.countOf(watcher) + more > limits.watchesPerConnectionMax) refuse("QUOTAEXCEEDED");
}
