/** The operations that change no node: reads and watches. Source: FinalRequestProcessor, DataTree. */
import {
  eventType,
  type OperationName,
  type OperationRequest,
  type OperationResponse,
  permission,
} from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { checkAcl, type Identity, isPermitted, maskDigests } from "./acl_check.ts";
import type { KeeperLimits } from "./keeper_limits.ts";
import { refuse } from "./operation_error.ts";
import type { KeeperSession } from "./session_table.ts";
import { toClientStat, type Tree, type ZNode } from "./tree.ts";
import { watchMode, type WatchTable } from "./watch_table.ts";

export interface ReadState {
  readonly tree: Tree;
  readonly watches: WatchTable<unknown>;
  readonly limits: KeeperLimits;
  notify(watcher: unknown, type: number, path: string): void;
}

export interface ReadRequester {
  readonly session: KeeperSession;
  readonly identities: readonly Identity[];
  readonly watcher: unknown;
}

export type Read<Name extends OperationName> = (
  request: OperationRequest<Name>,
  state: ReadState,
  requester: ReadRequester,
) => OperationResponse<Name>;

export const exists: Read<"exists"> = ({ path, watch }, state, requester) => {
  if (path.includes("\0")) refuse("BADARGUMENTS");
  const node = state.tree.get(path);
  if (node !== undefined) checkAcl(node.acl, permission.read, requester.identities);
  if (watch) watchData(path, state, requester);
  return { stat: toClientStat(node ?? refuse("NONODE")) };
};

export const getData: Read<"getData"> = ({ path, watch }, state, requester) => {
  const node = requireReadable(path, state, requester);
  if (watch) watchData(path, state, requester);
  return { data: node.data, stat: toClientStat(node) };
};

export const getChildren: Read<"getChildren2"> = ({ path, watch }, state, requester) => {
  const node = requireReadable(path, state, requester);
  if (watch) {
    checkWatchLimits(path, 1, state, requester);
    state.watches.children.add(path || "/", requester.watcher, watchMode.once);
  }
  return { children: node.children === null ? [] : [...node.children], stat: toClientStat(node) };
};

export const getAcl: Read<"getAcl"> = ({ path }, state, requester) => {
  const node = state.tree.get(path) ?? refuse("NONODE");
  checkAcl(node.acl, permission.read | permission.admin, requester.identities);
  const open = isPermitted(node.acl, permission.admin, requester.identities);
  return { acl: open ? [...node.acl] : maskDigests(node.acl), stat: toClientStat(node) };
};

export const getAllChildrenNumber: Read<"getAllChildrenNumber"> = ({ path }, state, requester) => {
  return { totalNumber: state.tree.descendantCount(requireReadable(path, state, requester)) };
};

export const getEphemerals: Read<"getEphemerals"> = ({ prefixPath }, state, requester) => {
  const paths = [...state.tree.ephemeralsOf(requester.session.id)].map((node) => node.path);
  return { ephemerals: paths.filter((path) => path.startsWith(prefixPath)) };
};

export const whoAmI: Read<"whoAmI"> = (_, _state, requester) => {
  const user = ({ scheme, id }: Identity) => scheme === "digest" ? id.slice(0, id.indexOf(":")) : id;
  return {
    clientInfo: requester.identities.map((identity) => ({ authScheme: identity.scheme, user: user(identity) })),
  };
};

export const addWatch: Read<"addWatch"> = ({ path, mode }, state, requester) => {
  if (mode !== 0 && mode !== 1) refuse("MARSHALLINGERROR");
  checkWatchLimits(path, 2, state, requester);
  state.watches.addPersistent(path || "/", requester.watcher, mode === 0 ? watchMode.persistent : watchMode.recursive);
  return { err: 0 };
};

/** ZooKeeper's WatcherType. */
const watcherType = { children: 1, data: 2, any: 3 } as const;
const watcherTypes: ReadonlySet<number> = new Set(Object.values(watcherType));

/**
 * The modes that a removal affects. A persistent watch is for data and children: removing one kind must not leave half
 * of it.
 */
function modesOf(type: number): number | undefined {
  return type === watcherType.any ? undefined : watchMode.once;
}

export const checkWatches: Read<"checkWatches"> = ({ path, type }, state, requester) => {
  if (!watcherTypes.has(type)) refuse("MARSHALLINGERROR");
  const { data, children } = state.watches;
  const modes = modesOf(type);
  const found = type !== watcherType.children && data.has(path, requester.watcher, modes) ||
    type !== watcherType.data && children.has(path, requester.watcher, modes);
  return found ? {} : refuse("NOWATCHER");
};

export const removeWatches: Read<"removeWatches"> = ({ path, type }, state, requester) => {
  if (!watcherTypes.has(type)) refuse("MARSHALLINGERROR");
  const { data, children } = state.watches;
  const modes = modesOf(type);
  const ofData = type !== watcherType.children && data.remove(path, requester.watcher, modes);
  const ofChildren = type !== watcherType.data && children.remove(path, requester.watcher, modes);
  return ofData || ofChildren ? {} : refuse("NOWATCHER");
};

/**
 * Sets a client's watches again after a reconnect. Notifies the client immediately of changes since its last zxid. A
 * change of a node that it may not read is not reported: the watch is set instead.
 */
export const setWatches: Read<"setWatches2"> = (request, state, requester) => {
  const { tree, watches } = state;
  const { watcher } = requester;
  const mayRead = (node: ZNode) => isPermitted(node.acl, permission.read, requester.identities);
  const lists = [request.dataWatches, request.existWatches, request.childWatches];
  const persistent = [request.persistentWatches, request.persistentRecursiveWatches];
  const count = [...lists, ...persistent, ...persistent].reduce((sum, list) => sum + (list?.length ?? 0), 0);
  const longest = [...lists, ...persistent].flatMap((list) => list ?? []).reduce(
    (a, b) => a.length > b.length ? a : b,
    "",
  );
  if (count > state.limits.watchesPerRequestMax) refuse("BADARGUMENTS");
  checkWatchLimits(longest, count, state, requester);
  for (const path of request.dataWatches ?? []) {
    const node = tree.get(path);
    if (node === undefined) state.notify(watcher, eventType.deleted, path);
    else if (node.mzxid > request.relativeZxid && mayRead(node)) state.notify(watcher, eventType.dataChanged, path);
    else watches.data.add(path, watcher, watchMode.once);
  }
  for (const path of request.existWatches ?? []) {
    const node = tree.get(path);
    if (node !== undefined && mayRead(node)) state.notify(watcher, eventType.created, path);
    else watches.data.add(path, watcher, watchMode.once);
  }
  for (const path of request.childWatches ?? []) {
    const node = tree.get(path);
    if (node === undefined) state.notify(watcher, eventType.deleted, path);
    else if (node.pzxid > request.relativeZxid && mayRead(node)) state.notify(watcher, eventType.childrenChanged, path);
    else watches.children.add(path, watcher, watchMode.once);
  }
  for (const path of request.persistentWatches ?? []) watches.addPersistent(path, watcher, watchMode.persistent);
  for (const path of request.persistentRecursiveWatches ?? []) {
    watches.addPersistent(path, watcher, watchMode.recursive);
  }
  return {};
};

function requireReadable(path: string, state: ReadState, requester: ReadRequester): ZNode {
  const node = state.tree.get(path) ?? refuse("NONODE");
  checkAcl(node.acl, permission.read, requester.identities);
  return node;
}

function watchData(path: string, state: ReadState, requester: ReadRequester): void {
  checkWatchLimits(path, 1, state, requester);
  state.watches.data.add(path || "/", requester.watcher, watchMode.once);
}

function checkWatchLimits(
  path: string,
  more: number,
  { watches, limits }: ReadState,
  { watcher }: ReadRequester,
): void {
  if (path.length > limits.pathCharsMax) refuse("BADARGUMENTS");
  if (watches.count + more > limits.watchesMax) refuse("QUOTAEXCEEDED");
  if (watches.countOf(watcher) + more > limits.watchesPerConnectionMax) refuse("QUOTAEXCEEDED");
}
