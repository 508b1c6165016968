/**
 * The implementation of each request: one row per operation code. The records come from wire/jute, which the client
 * uses too.
 */
import { protocolError } from "../../../base/wire/bytes.ts";
import { type Codec, empty } from "../../../base/wire/record_codec.ts";
import {
  type MultiRequest,
  multiRequest,
  multiResponse,
  type MultiResult,
} from "../../../protocols/zookeeper/jute/multi_request.ts";
import {
  checkCode,
  multiCode,
  multiReadCode,
  type OperationName,
  type OperationRequest,
  type OperationResponse,
  operations,
  reconfigCode,
} from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import * as reads from "./read_operations.ts";
import type { Read, ReadRequester, ReadState } from "./read_operations.ts";
import { OperationError, refuse } from "./operation_error.ts";
import type { Transaction } from "./transaction.ts";
import { toClientStat, type ZNode } from "./tree.ts";

interface OperationRecords {
  readonly request: Codec<unknown>;
  readonly response: Codec<unknown>;
}
interface WriteOperation extends OperationRecords {
  readonly kind: "write";
  run(request: never, transaction: Transaction): unknown;
}
interface ReadOperation extends OperationRecords {
  readonly kind: "read";
  run(request: never, state: ReadState, requester: ReadRequester): unknown;
}
export type KeeperOperation = WriteOperation | ReadOperation;

type Write<Name extends OperationName> = (
  request: OperationRequest<Name>,
  transaction: Transaction,
) => OperationResponse<Name>;

const table = new Map<number, KeeperOperation>();

function defineWrite<Name extends OperationName>(name: Name, run: Write<Name>): void {
  const { code, request, response } = operations[name];
  table.set(code, { kind: "write", request, response, run } as unknown as KeeperOperation);
}

function defineRead<Name extends OperationName>(name: Name, run: Read<Name>): void {
  const { code, request, response } = operations[name];
  table.set(code, { kind: "read", request, response, run } as unknown as KeeperOperation);
}

const created = (node: ZNode) => ({ path: node.path, stat: toClientStat(node) });
const create2: Write<"create2"> = (request, transaction) => created(transaction.create(request));

defineWrite("create", (request, transaction) => ({ path: transaction.create(request).path }));
defineWrite("create2", create2);
defineWrite("createContainer", create2);
defineWrite("createTtl", (request, transaction) => created(transaction.create(request, request.ttl)));
defineWrite("delete", (request, transaction) => {
  transaction.delete(request);
  return {};
});
defineWrite("setData", (request, transaction) => ({ stat: toClientStat(transaction.setData(request)) }));
defineWrite("setAcl", (request, transaction) => ({ stat: toClientStat(transaction.setAcl(request)) }));

defineRead("exists", reads.exists);
defineRead("getData", reads.getData);
defineRead("getAcl", reads.getAcl);
defineRead(
  "getChildren",
  (request, state, requester) => ({ children: reads.getChildren(request, state, requester).children }),
);
defineRead("getChildren2", reads.getChildren);
defineRead("sync", (request) => ({ path: request.path }));
defineRead("ping", () => ({}));
defineRead(
  "setWatches",
  (request, state, requester) =>
    reads.setWatches({ ...request, persistentWatches: null, persistentRecursiveWatches: null }, state, requester),
);
defineRead("setWatches2", reads.setWatches);
defineRead("addWatch", reads.addWatch);
defineRead("checkWatches", reads.checkWatches);
defineRead("removeWatches", reads.removeWatches);
defineRead("getEphemerals", reads.getEphemerals);
defineRead("getAllChildrenNumber", reads.getAllChildrenNumber);
defineRead("whoAmI", reads.whoAmI);

const multi = { request: multiRequest, response: multiResponse };
table.set(multiCode, { kind: "write", ...multi, run: runMulti } as unknown as KeeperOperation);
table.set(multiReadCode, { kind: "read", ...multi, run: runMultiRead } as unknown as KeeperOperation);
for (const code of [checkCode, reconfigCode]) {
  table.set(code, { kind: "read", request: empty, response: empty, run: () => refuse("UNIMPLEMENTED") });
}

export const operationsByCode: ReadonlyMap<number, KeeperOperation> = table;

const ok = 0;
const runtimeInconsistency = -2;

const readTypes: ReadonlySet<MultiRequest["type"]> = new Set(["getData", "getChildren"]);

/** Accepts either reads or writes in one request, like ZooKeeper. Throws MARSHALLINGERROR for a mixture. */
function checkKind(requests: readonly MultiRequest[], kind: "reads" | "writes"): void {
  if (requests.some(({ type }) => readTypes.has(type) !== (kind === "reads"))) refuse("MARSHALLINGERROR");
}

/**
 * Executes all operations or none. In the response the failed operation has its error, those before it have 0, those
 * after it -2; the header has 0.
 */
function runMulti(requests: MultiRequest[], transaction: Transaction): MultiResult[] {
  checkKind(requests, "writes");
  if (requests.length > transaction.limits.operationsPerMultiMax) refuse("BADARGUMENTS");
  const results: MultiResult[] = [];
  for (const request of requests) {
    try {
      results.push(runInMulti(request, transaction));
    } catch (thrown) {
      if (!(thrown instanceof OperationError)) throw thrown;
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

function runInMulti(request: MultiRequest, transaction: Transaction): MultiResult {
  switch (request.type) {
    // Results have a stat where ZooKeeper's have one: a create2 in a multi becomes a CreateTxn there.
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
      return { type: "setData", stat: toClientStat(transaction.setData(request)) };
    case "check":
      transaction.check(request);
      return { type: "check" };
    default:
      return refuse("UNIMPLEMENTED");
  }
}

/** Executes each read by itself. Throws PROTOCOL when the results are larger than one response may be. */
function runMultiRead(requests: MultiRequest[], state: ReadState, requester: ReadRequester): MultiResult[] {
  checkKind(requests, "reads");
  const { operationsPerMultiMax, multiReadBytesMax } = state.limits;
  if (requests.length > operationsPerMultiMax) refuse("BADARGUMENTS");
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
    if (request.type === "getData") return { type: "getData", ...reads.getData(request, state, requester) };
    if (request.type !== "getChildren") return refuse("UNIMPLEMENTED");
    return { type: "getChildren", children: reads.getChildren(request, state, requester).children };
  } catch (thrown) {
    if (!(thrown instanceof OperationError)) throw thrown;
    return { type: "error", err: thrown.errorNumber };
  }
}
