/** Znodes: data, version, existence and owner, with transactions over several paths. Children are not modelled. */
import { z } from "zod";
import type { CheckerModel, HistoryOperation, Witness } from "../operation.ts";

const version = z.number().int().min(-1);
const zxid = z.number().int();
const change = {
  create: z.object({ data: z.string(), ephemeral: z.boolean().optional() }),
  set: z.object({ data: z.string(), version }),
  delete: z.object({ version }),
  check: z.object({ version }),
};
const part = z.discriminatedUnion("do", [
  change.create.extend({ do: z.literal("create"), key: z.string() }),
  change.set.extend({ do: z.literal("set"), key: z.string() }),
  change.delete.extend({ do: z.literal("delete"), key: z.string() }),
  change.check.extend({ do: z.literal("check"), key: z.string() }),
]);
const refused = z.object({ error: z.string(), index: z.number().int().optional() });
const refusedOr = <T extends z.ZodType>(shape: T) => z.union([refused, shape]).nullable();
const read = z.object({
  data: z.string().optional(),
  version: z.number().int(),
  czxid: zxid.optional(),
  mzxid: zxid.optional(),
});
const done = z.object({ version: z.number().int().optional(), zxid: zxid.optional() });
const stale = z.object({ stale: z.boolean().optional() });

const shape = z.discriminatedUnion("do", [
  z.object({ do: z.literal("create"), input: change.create, output: refusedOr(done) }),
  z.object({ do: z.literal("set"), input: change.set, output: refusedOr(done) }),
  z.object({ do: z.literal("delete"), input: change.delete, output: refusedOr(done) }),
  z.object({ do: z.literal("get"), input: stale, output: refusedOr(read) }),
  z.object({ do: z.literal("multi"), input: z.object({ parts: z.array(part).min(1) }), output: refusedOr(done) }),
  z.object({ do: z.literal("end"), input: z.object({}), output: z.object({}).nullable() }),
]);

type Part = z.infer<typeof part>;
type Reply = {
  error?: string;
  index?: number;
  data?: string;
  version?: number;
  zxid?: number;
  czxid?: number;
  mzxid?: number;
};

interface Znode {
  readonly data: string;
  readonly version: number;
  /** The session of an ephemeral node. */
  readonly owner: string | null;
  /** Null as long as no response has named them. */
  readonly czxid: number | null;
  readonly mzxid: number | null;
  /** Where the last change is not named: it came after this one. */
  readonly afterZxid: number;
}

interface Znodes {
  readonly nodes: ReadonlyMap<string, Znode>;
  /** The highest zxid of a change that a response has named. */
  readonly lastZxid: number;
}

interface Transaction {
  readonly session: string | null;
  readonly zxid: number | null;
  readonly afterZxid: number;
}

function nodeAfter(
  node: Znode | undefined,
  one: Part,
  { session, zxid, afterZxid }: Transaction,
): Znode | undefined | { error: string } {
  const changed = { mzxid: zxid, afterZxid: zxid ?? afterZxid };
  if (one.do === "create") {
    if (node !== undefined) return { error: "NODEEXISTS" };
    return { data: one.data, version: 0, owner: one.ephemeral ? session : null, czxid: zxid, ...changed };
  }
  if (node === undefined) return { error: "NONODE" };
  if (one.version !== -1 && one.version !== node.version) return { error: "BADVERSION" };
  if (one.do === "check") return node;
  return one.do === "delete" ? undefined : { ...node, data: one.data, version: node.version + 1, ...changed };
}

/** The nodes after a transaction, or its refusal. */
function applied(state: Znodes, parts: readonly Part[], { session, output }: HistoryOperation): Znodes | Reply {
  const nodes = new Map(state.nodes);
  const zxid = (output as Reply | null)?.zxid ?? null;
  for (const [index, one] of parts.entries()) {
    const after = nodeAfter(nodes.get(one.key), one, { session: session ?? null, zxid, afterZxid: state.lastZxid });
    if (after !== undefined && "error" in after) return { error: after.error, index };
    if (after === undefined) nodes.delete(one.key);
    else nodes.set(one.key, after);
  }
  if (parts.every((one) => one.do === "check")) return state;
  return { nodes, lastZxid: Math.max(state.lastZxid, zxid ?? 0) };
}

function changed(state: Znodes, parts: readonly Part[], operation: HistoryOperation): Znodes | null {
  const after = applied(state, parts, operation);
  const reply = operation.output as Reply | null;
  if (!("nodes" in after)) {
    if (reply === null) return state;
    return reply.error === after.error && (reply.index ?? after.index) === after.index ? state : null;
  }
  if (reply === null) return after;
  if (reply.error !== undefined) return null;
  // Changes have rising numbers; a transaction that only checks has one, too, and shows nothing by it.
  if (after !== state && reply.zxid !== undefined && reply.zxid <= state.lastZxid) return null;
  const [only] = parts;
  const now = only === undefined || parts.length > 1 ? undefined : after.nodes.get(only.key);
  return reply.version !== undefined && now?.version !== reply.version ? null : after;
}

const conflicts = (known: number | null, told: number | undefined) =>
  known !== null && told !== undefined && known !== told;

function seen(state: Znodes, key: string, reply: Reply): Znodes | null {
  const node = state.nodes.get(key);
  if (node === undefined) return reply.error === "NONODE" ? state : null;
  if (reply.error !== undefined || reply.version !== node.version) return null;
  if (reply.data !== undefined && reply.data !== node.data) return null;
  if (conflicts(node.czxid, reply.czxid) || conflicts(node.mzxid, reply.mzxid)) return null;
  const czxid = node.czxid ?? reply.czxid ?? null;
  const mzxid = node.mzxid ?? reply.mzxid ?? null;
  if (mzxid !== node.mzxid && mzxid !== null && mzxid <= node.afterZxid) return null;
  if (czxid === node.czxid && mzxid === node.mzxid) return state;
  return {
    nodes: new Map(state.nodes).set(key, { ...node, czxid, mzxid }),
    lastZxid: Math.max(state.lastZxid, czxid ?? 0, mzxid ?? 0),
  };
}

function afterSession(state: Znodes, session: string | undefined): Znodes {
  const left = [...state.nodes].filter(([, { owner }]) => owner === null || owner !== session);
  return left.length === state.nodes.size ? state : { ...state, nodes: new Map(left) };
}

/** The parts of an operation that changes nodes. */
function partsOf({ do: name, keys, input }: HistoryOperation): readonly Part[] {
  if (name === "multi") return (input as { parts: readonly Part[] }).parts;
  return [{ ...input, do: name, key: keys[0] ?? "" } as Part];
}

/** The data that an operation writes. */
const written = (operation: HistoryOperation): string[] =>
  operation.do === "get" || operation.do === "end"
    ? []
    : partsOf(operation).flatMap((one) => ("data" in one ? [one.data] : []));

/**
 * An operation of unknown outcome took effect when a response shows data that it alone has written: before that
 * response, with the version and the zxid that the response names.
 */
function withShownOutcomes(operations: readonly HistoryOperation[]): readonly HistoryOperation[] {
  const writers = new Map<string, number>();
  for (const data of operations.flatMap(written)) writers.set(data, (writers.get(data) ?? 0) + 1);
  const shown = new Map<string, HistoryOperation>();
  for (const one of operations) {
    const { data } = (one.output ?? {}) as Reply;
    if (data === undefined || writers.get(data) !== 1) continue;
    const first = shown.get(data);
    if (first === undefined || one.to < first.to) shown.set(data, one);
  }
  return operations.map((one) => {
    if (one.outcome !== "unknown") return one;
    const reads = written(one).map((data) => shown.get(data)).filter((read) => read !== undefined);
    const [first] = reads.sort((a, b) => a.to - b.to);
    if (first === undefined || first.to < one.from) return one;
    const { version, mzxid } = first.output as Reply;
    const output = {
      ...(mzxid === undefined ? {} : { zxid: mzxid }),
      ...(one.do === "multi" ? {} : { version }),
    };
    return { ...one, outcome: "ok", to: first.to, output };
  });
}

/**
 * A version that has passed does not come again where nothing is deleted: a set that demands it can take effect once
 * only.
 */
function withSpendable(operations: readonly HistoryOperation[]): readonly HistoryOperation[] {
  if (operations.some(({ do: name }) => name === "end")) return operations;
  const deleted = new Set(
    operations.filter(({ do: name }) => name === "delete" || name === "multi").flatMap(({ keys }) => keys),
  );
  return operations.map((one) => {
    const isOnce = one.outcome === "unknown" && one.do === "set" && one.input["version"] !== -1;
    return isOnce && !one.keys.some((key) => deleted.has(key)) ? { ...one, input: { ...one.input, once: true } } : one;
  });
}

/** Data that no response shows need not be told apart. */
function withoutUnread(operations: readonly HistoryOperation[]): readonly HistoryOperation[] {
  const read = new Set(operations.map(({ output }) => (output as Reply | null)?.data));
  const short = <T extends object>(one: T): T =>
    "data" in one && !read.has(one.data as string) ? { ...one, data: neverRead } : one;
  return operations.map((one) => {
    const { parts } = one.input as { parts?: readonly Part[] };
    return { ...one, input: parts === undefined ? short(one.input) : { parts: parts.map(short) } };
  });
}

/** Stands for all data that no response shows. */
const neverRead = "(never read)";

export const znodeModel: CheckerModel<Znodes> = {
  name: "znode",
  shape,
  initial: () => ({ nodes: new Map(), lastZxid: 0 }),
  step(state, operation) {
    if (operation.do === "end") return afterSession(state, operation.session);
    if (operation.do !== "get") return changed(state, partsOf(operation), operation);
    return operation.output === null ? state : seen(state, operation.keys[0] ?? "", operation.output as Reply);
  },
  key: ({ nodes, lastZxid }) => JSON.stringify([lastZxid, [...nodes].sort(([a], [b]) => (a < b ? -1 : 1))]),
  mayMatter: ({ do: name }) => name !== "get",
  simplified: (operations) => withoutUnread(withSpendable(withShownOutcomes(operations))),
  isSpent({ nodes }, { keys, input }) {
    const { once, version } = input as { once?: true; version: number };
    return once === true && (nodes.get(keys[0] ?? "")?.version ?? -1) > version;
  },
  isStale: ({ do: name, input }) => name === "get" && input["stale"] === true,
  witness({ do: name, output }): Witness | null {
    const { zxid, mzxid } = (output ?? {}) as Reply;
    if (name === "get") return mzxid === undefined ? null : { at: mzxid, kind: "observation" };
    return zxid === undefined ? null : { at: zxid, kind: "change" };
  },
  describe: ({ nodes }) =>
    nodes.size === 0
      ? "no nodes"
      : [...nodes].map(([path, { data, version }]) => `${path} = ${JSON.stringify(data)}, version ${version}`).join(
        "; ",
      ),
};
