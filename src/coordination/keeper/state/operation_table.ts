/**
 * How the keeper executes each operation: a table by operation code, and the operations that change no node. Operations
 * that change nodes are in transaction.ts. Source: FinalRequestProcessor, DataTree.
 */
import { protocolError } from "../../../base/wire/bytes.ts";
import { emptyJuteRecordCodec, type JuteCodec } from "../../../base/wire/record_codec.ts";
import {
  type MultiRequest,
  multiRequestCodec,
  multiResponseCodec,
  type MultiResult,
} from "../../../protocols/zookeeper/jute/multi_request.ts";
import {
  aclPermission,
  checkOperationCode,
  multiOperationCode,
  multiReadOperationCode,
  reconfigOperationCode,
  watchEventType,
  type ZooKeeperOperationName,
  type ZooKeeperOperationRequest,
  type ZooKeeperOperationResponse,
  zooKeeperOperations,
} from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { KeeperOperationError, refuseKeeperOperation } from "./operation_error.ts";
import type { KeeperTransaction } from "./transaction.ts";
import { type NodeTree, toNodeStat, type ZNode } from "./tree.ts";
import { checkAcl, type ClientIdentity, isPermittedByAcl, maskAclDigests } from "./acl_check.ts";
import type { KeeperLimits } from "./keeper_limits.ts";
import type { KeeperSession } from "./session_table.ts";
import { watchMode, type WatchTable } from "./watch_table.ts";

interface ReadState {
  readonly tree: NodeTree;
  readonly watches: WatchTable<unknown>;
  readonly limits: KeeperLimits;
  notify(watcher: unknown, type: number, path: string): void;
}

interface ReadRequester {
  readonly session: KeeperSession;
  readonly identities: readonly ClientIdentity[];
  readonly watcher: unknown;
}

type Read<Name extends ZooKeeperOperationName> = (
  request: ZooKeeperOperationRequest<Name>,
  state: ReadState,
  requester: ReadRequester,
) => ZooKeeperOperationResponse<Name>;

const exists: Read<"exists"> = ({ path, watch }, state, requester) => {
  if (path.includes("\0")) refuseKeeperOperation("BADARGUMENTS");
  const node = state.tree.get(path);
  if (node !== undefined) checkAcl(node.acl, aclPermission.read, requester.identities);
  if (watch) watchData(path, state, requester);
  return { stat: toNodeStat(node ?? refuseKeeperOperation("NONODE")) };
};

const getData: Read<"getData"> = ({ path, watch }, state, requester) => {
  const node = requireReadable(path, state, requester);
  if (watch) watchData(path, state, requester);
  return { data: node.data, stat: toNodeStat(node) };
};

const getChildren: Read<"getChildren2"> = ({ path, watch }, state, requester) => {
  const node = requireReadable(path, state, requester);
  if (watch) {
    checkWatchLimits(path, 1, state, requester);
    state.watches.children.add(path || "/", requester.watcher, watchMode.once);
  }
  return { children: node.children === null ? [] : [...node.children], stat: toNodeStat(node) };
};

const getAcl: Read<"getAcl"> = ({ path }, state, requester) => {
  const node = state.tree.get(path) ?? refuseKeeperOperation("NONODE");
  checkAcl(node.acl, aclPermission.read | aclPermission.admin, requester.identities);
  const open = isPermittedByAcl(node.acl, aclPermission.admin, requester.identities);
  return { acl: open ? [...node.acl] : maskAclDigests(node.acl), stat: toNodeStat(node) };
};

const getAllChildrenNumber: Read<"getAllChildrenNumber"> = ({ path }, state, requester) => {
  return { totalNumber: state.tree.descendantCount(requireReadable(path, state, requester)) };
};

const getEphemerals: Read<"getEphemerals"> = ({ prefixPath }, state, requester) => {
  const paths = [...state.tree.ephemeralsOf(requester.session.id)].map((node) => node.path);
  return { ephemerals: paths.filter((path) => path.startsWith(prefixPath)) };
};

const whoAmI: Read<"whoAmI"> = (_, _state, requester) => {
  const user = ({ scheme, id }: ClientIdentity) => scheme === "digest" ? id.slice(0, id.indexOf(":")) : id;
  return {
    clientInfo: requester.identities.map((identity) => ({ authScheme: identity.scheme, user: user(identity) })),
  };
};

const addWatch: Read<"addWatch"> = ({ path, mode }, state, requester) => {
  if (mode !== 0 && mode !== 1) refuseKeeperOperation("MARSHALLINGERROR");
  checkWatchLimits(path, 2, state, requester);
  state.watches.addPersistent(path || "/", requester.watcher, mode === 0 ? watchMode.persistent : watchMode.recursive);
  return { err: 0 };
};

/** The values of ZooKeeper's WatcherType. */
const watcherType = { children: 1, data: 2, any: 3 } as const;
const watcherTypes: ReadonlySet<number> = new Set(Object.values(watcherType));

/**
 * Returns the modes of the watches to check or remove; undefined means all. A persistent watch is for both data and
 * children: if the client removes only one of the two, the watch stays.
 */
function modesOf(type: number): number | undefined {
  return type === watcherType.any ? undefined : watchMode.once;
}

const checkWatches: Read<"checkWatches"> = ({ path, type }, state, requester) => {
  if (!watcherTypes.has(type)) refuseKeeperOperation("MARSHALLINGERROR");
  const { data, children } = state.watches;
  const modes = modesOf(type);
  const found = type !== watcherType.children && data.has(path, requester.watcher, modes) ||
    type !== watcherType.data && children.has(path, requester.watcher, modes);
  return found ? {} : refuseKeeperOperation("NOWATCHER");
};

const removeWatches: Read<"removeWatches"> = ({ path, type }, state, requester) => {
  if (!watcherTypes.has(type)) refuseKeeperOperation("MARSHALLINGERROR");
  const { data, children } = state.watches;
  const modes = modesOf(type);
  const ofData = type !== watcherType.children && data.remove(path, requester.watcher, modes);
  const ofChildren = type !== watcherType.data && children.remove(path, requester.watcher, modes);
  return ofData || ofChildren ? {} : refuseKeeperOperation("NOWATCHER");
};

/**
 * Restores a client's watches after a reconnect. Immediately notifies the client of changes since its last zxid. If the
 * client may not read a changed node, restores the watch without notifying the client.
 */
const setWatches: Read<"setWatches2"> = (request, state, requester) => {
  const { tree, watches } = state;
  const { watcher } = requester;
  const mayRead = (node: ZNode) => isPermittedByAcl(node.acl, aclPermission.read, requester.identities);
  const lists = [request.dataWatches, request.existWatches, request.childWatches];
  const persistent = [request.persistentWatches, request.persistentRecursiveWatches];
  const count = [...lists, ...persistent, ...persistent].reduce((sum, list) => sum + (list?.length ?? 0), 0);
  const longest = [...lists, ...persistent].flatMap((list) => list ?? []).reduce(
    (a, b) => a.length > b.length ? a : b,
    "",
  );
  if (count > state.limits.watchesPerRequestMax) refuseKeeperOperation("BADARGUMENTS");
  checkWatchLimits(longest, count, state, requester);
  for (const path of request.dataWatches ?? []) {
    const node = tree.get(path);
    if (node === undefined) state.notify(watcher, watchEventType.deleted, path);
    else if (node.mzxid > request.relativeZxid && mayRead(node)) {
      state.notify(watcher, watchEventType.dataChanged, path);
    } else watches.data.add(path, watcher, watchMode.once);
  }
  for (const path of request.existWatches ?? []) {
    const node = tree.get(path);
    if (node !== undefined && mayRead(node)) state.notify(watcher, watchEventType.created, path);
    else watches.data.add(path, watcher, watchMode.once);
  }
  for (const path of request.childWatches ?? []) {
    const node = tree.get(path);
    if (node === undefined) state.notify(watcher, watchEventType.deleted, path);
    else if (node.pzxid > request.relativeZxid && mayRead(node)) {
      state.notify(watcher, watchEventType.childrenChanged, path);
    } else watches.children.add(path, watcher, watchMode.once);
  }
  for (const path of request.persistentWatches ?? []) watches.addPersistent(path, watcher, watchMode.persistent);
  for (const path of request.persistentRecursiveWatches ?? []) {
    watches.addPersistent(path, watcher, watchMode.recursive);
  }
  return {};
};

function requireReadable(path: string, state: ReadState, requester: ReadRequester): ZNode {
  const node = state.tree.get(path) ?? refuseKeeperOperation("NONODE");
  checkAcl(node.acl, aclPermission.read, requester.identities);
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
  if (path.length > limits.pathCharsMax) refuseKeeperOperation("BADARGUMENTS");
  if (watches.count + more > limits.watchesMax) refuseKeeperOperation("QUOTAEXCEEDED");
  if (watches.countOf(watcher) + more > limits.watchesPerConnectionMax) refuseKeeperOperation("QUOTAEXCEEDED");
}

interface OperationRecords {
  readonly request: JuteCodec<unknown>;
  readonly response: JuteCodec<unknown>;
}
interface WriteOperation extends OperationRecords {
  readonly kind: "write";
  run(request: never, transaction: KeeperTransaction): unknown;
}
interface ReadOperation extends OperationRecords {
  readonly kind: "read";
  run(request: never, state: ReadState, requester: ReadRequester): unknown;
}
export type KeeperOperation = WriteOperation | ReadOperation;

type Write<Name extends ZooKeeperOperationName> = (
  request: ZooKeeperOperationRequest<Name>,
  transaction: KeeperTransaction,
) => ZooKeeperOperationResponse<Name>;

const table = new Map<number, KeeperOperation>();

function defineWrite<Name extends ZooKeeperOperationName>(name: Name, run: Write<Name>): void {
  const { code, request, response } = zooKeeperOperations[name];
  table.set(code, { kind: "write", request, response, run } as unknown as KeeperOperation);
}

function defineRead<Name extends ZooKeeperOperationName>(name: Name, run: Read<Name>): void {
  const { code, request, response } = zooKeeperOperations[name];
  table.set(code, { kind: "read", request, response, run } as unknown as KeeperOperation);
}

const created = (node: ZNode) => ({ path: node.path, stat: toNodeStat(node) });
const create2: Write<"create2"> = (request, transaction) => created(transaction.create(request));

defineWrite("create", (request, transaction) => ({ path: transaction.create(request).path }));
defineWrite("create2", create2);
defineWrite("createContainer", create2);
defineWrite("createTtl", (request, transaction) => created(transaction.create(request, request.ttl)));
defineWrite("delete", (request, transaction) => {
  transaction.delete(request);
  return {};
});
defineWrite("setData", (request, transaction) => ({ stat: toNodeStat(transaction.setData(request)) }));
defineWrite("setAcl", (request, transaction) => ({ stat: toNodeStat(transaction.setAcl(request)) }));

defineRead("exists", exists);
defineRead("getData", getData);
defineRead("getAcl", getAcl);
defineRead(
  "getChildren",
  (request, state, requester) => ({ children: getChildren(request, state, requester).children }),
);
defineRead("getChildren2", getChildren);
defineRead("sync", (request) => ({ path: request.path }));
defineRead("ping", () => ({}));
defineRead(
  "setWatches",
  (request, state, requester) =>
    setWatches({ ...request, persistentWatches: null, persistentRecursiveWatches: null }, state, requester),
);
defineRead("setWatches2", setWatches);
defineRead("addWatch", addWatch);
defineRead("checkWatches", checkWatches);
defineRead("removeWatches", removeWatches);
defineRead("getEphemerals", getEphemerals);
defineRead("getAllChildrenNumber", getAllChildrenNumber);
defineRead("whoAmI", whoAmI);

const multi = { request: multiRequestCodec, response: multiResponseCodec };
table.set(multiOperationCode, { kind: "write", ...multi, run: runMulti } as unknown as KeeperOperation);
table.set(multiReadOperationCode, { kind: "read", ...multi, run: runMultiRead } as unknown as KeeperOperation);
for (const code of [checkOperationCode, reconfigOperationCode]) {
  table.set(code, {
    kind: "read",
    request: emptyJuteRecordCodec,
    response: emptyJuteRecordCodec,
    run: () => refuseKeeperOperation("UNIMPLEMENTED"),
  });
}

export const keeperOperationsByCode: ReadonlyMap<number, KeeperOperation> = table;

const ok = 0;
const runtimeInconsistency = -2;

const readTypes: ReadonlySet<MultiRequest["type"]> = new Set(["getData", "getChildren"]);

/** Throws MARSHALLINGERROR if one request mixes reads and writes, as ZooKeeper does. */
function checkKind(requests: readonly MultiRequest[], kind: "reads" | "writes"): void {
  if (requests.some(({ type }) => readTypes.has(type) !== (kind === "reads"))) {
    refuseKeeperOperation("MARSHALLINGERROR");
  }
}

/**
 * Executes all operations or none. After a failure, the response contains 0 for the operations before the failed one,
 * its own error for the failed one, and -2 for those after it. The error in the header is 0.
 */
function runMulti(requests: MultiRequest[], transaction: KeeperTransaction): MultiResult[] {
  checkKind(requests, "writes");
  if (requests.length > transaction.limits.operationsPerMultiMax) refuseKeeperOperation("BADARGUMENTS");
  const results: MultiResult[] = [];
  for (const request of requests) {
    try {
      results.push(runInMulti(request, transaction));
    } catch (thrown) {
      if (!(thrown instanceof KeeperOperationError)) throw thrown;
      transaction.rollback();
      const failed = results.length;
      return requests.map((_, index) => ({
        type: "error",
        err: index < failed ? ok : index === failed ? thrown.errorNumber : runtimeInconsistency,
      }));
    }
  }
  return results;
}

function runInMulti(request: MultiRequest, transaction: KeeperTransaction): MultiResult {
  switch (request.type) {
    // A result has a stat only where ZooKeeper's result has one: ZooKeeper turns a create2 in a multi into a CreateTxn.
    case "create":
    case "create2":
      return { type: "create", path: transaction.create(request).path };
    case "createContainer":
      return { type: "create2", ...create2(request, transaction) };
    case "createTtl":
      return { type: "create2", ...created(transaction.create(request, request.ttl)) };
    case "delete":
      transaction.delete(request);
      return { type: "delete" };
    case "setData":
      return { type: "setData", stat: toNodeStat(transaction.setData(request)) };
    case "check":
      transaction.check(request);
      return { type: "check" };
    default:
      return refuseKeeperOperation("UNIMPLEMENTED");
  }
}

/** Executes each read, even if another one fails. Throws PROTOCOL if the results are too large for one response. */
function runMultiRead(requests: MultiRequest[], state: ReadState, requester: ReadRequester): MultiResult[] {
  checkKind(requests, "reads");
  const { operationsPerMultiMax, multiReadBytesMax } = state.limits;
  if (requests.length > operationsPerMultiMax) refuseKeeperOperation("BADARGUMENTS");
  let bytes = 0;
  return requests.map((request): MultiResult => {
    const result = runInMultiRead(request, state, requester);
    if (result.type === "getData") bytes += result.data?.byteLength ?? 0;
    if (result.type === "getChildren") bytes += (result.children ?? []).reduce((sum, name) => sum + name.length, 0);
    if (bytes <= multiReadBytesMax) return result;
    throw protocolError(`A multiRead asks for more than ${multiReadBytesMax} bytes`);
  });
}

function runInMultiRead(request: MultiRequest, state: ReadState, requester: ReadRequester): MultiResult {
  try {
    if (request.type === "getData") return { type: "getData", ...getData(request, state, requester) };
    if (request.type !== "getChildren") return refuseKeeperOperation("UNIMPLEMENTED");
    return { type: "getChildren", children: getChildren(request, state, requester).children };
  } catch (thrown) {
    if (!(thrown instanceof KeeperOperationError)) throw thrown;
    return { type: "error", err: thrown.errorNumber };
  }
}
