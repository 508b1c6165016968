/** `baton fence zk set|create|delete`: writes a ZooKeeper node while the locks of the job are held. */
import { closeSync, openSync } from "node:fs";
import { printJson } from "../../../src/base/terminal/io.ts";
import { wasStdinClosedAtStart } from "../../../src/base/process/spawn/inherited_descriptors.ts";
import { parseFencingToken } from "../../../src/coordination/fence/token_slots.ts";
import { connect } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { validateNodePath } from "../../../src/protocols/zookeeper/node_path.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage, errorReason } from "../../../src/base/errors.ts";
import {
  type FencedNodeOperation,
  fencedWrite,
  findReservedNodeFolder,
  type HeldLockNode,
  staleLockHolderError,
} from "../../../src/coordination/fence/fenced_write.ts";
import { findOwnHolderNode } from "../../../src/coordination/admin/own_holder.ts";
import { didYouMean } from "../../../src/base/support/did_you_mean.ts";
import { readBytesAtMost } from "../../../src/base/support/read_at_most.ts";
import type { CommandCall } from "../../command.ts";
import { readCoordinationServers } from "../../../src/coordination/connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import type { fenceSettings } from "./fence_options.ts";
import { type OuterLocks, requireOuterLocks } from "../../../src/coordination/job/outer_locks.ts";
import type { FenceJson } from "../../json_shapes/job_shapes.ts";

const verbs = ["set", "create", "delete"] as const;
type Verb = (typeof verbs)[number];

/** The most bytes of data: ZooKeeper's largest request (jute.maxbuffer, 1 MiB) less room for the other fields. */
const dataBytesMax = 1024 * 1024 - 4096;

type FenceZkCall = CommandCall<typeof fenceSettings>;

export async function runFenceZk(call: FenceZkCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  const [, verb = "", at, data, ...more] = [...call.names, ...call.command ?? []];
  const operation = operationOf(call, { verb, path: at, data, more });
  const job = requireOuterLocks(io.env, "baton fence zk", "use");
  refuseReservedPath(operation, job, values.root);
  const tokens = tokensOf(call, job);
  const place = readCoordinationServers(values, sources);
  // No keeper is started, because a new one does not have the lock.
  const { startServer: _starts, ...options } = place.connect;
  await using zk = await connect(options);
  const held = await heldNodes(zk, job, operation, tokens);
  const { acl } = place.connect;
  const written = await fencedWrite(zk, operation, { held, root: values.root, ...(acl === undefined ? {} : { acl }) });
  if (values.json) {
    const { path, nodeVersion: node_version } = written;
    printJson<FenceJson>(io, { version: 1, action: operation.do, path, node_version });
  } else if (operation.do === "create" && operation.sequential) io.out(`${written.path}\n`);
  return exitCodes.SUCCESS;
}

interface FenceZkArgs {
  readonly verb: string;
  readonly path: string | undefined;
  readonly data: string | undefined;
  readonly more: readonly string[];
}

/**
 * Returns the write that the arguments ask for. Throws USAGE for invalid arguments, IO for unreadable data, BAD_DATA
 * for too much.
 */
function operationOf({ values }: FenceZkCall, { verb, path, data, more }: FenceZkArgs): FencedNodeOperation {
  const example = "as in: baton fence zk set /app/state running";
  if (!isVerb(verb)) {
    const given = verb === "" ? "but none was given" : `not "${verb}"${didYouMean(verb, verbs)}`;
    throw new BatonError("USAGE", `baton fence zk takes set, create or delete, ${given}, ${example}`);
  }
  if (path === undefined) throw new BatonError("USAGE", `baton fence zk ${verb} needs the path of a node, ${example}`);
  checkPath(path, values.sequential);
  const extra = verb === "delete" ? [...(data === undefined ? [] : [data]), ...more] : more;
  if (extra.length > 0) {
    const takes = verb === "delete" ? "one path" : "a path and one argument with the data; use quotation marks";
    throw new BatonError("USAGE", `unexpected argument "${extra.join(" ")}": baton fence zk ${verb} takes ${takes}`);
  }
  refuseFlags(verb, values);
  const version = values.version ?? -1;
  if (verb === "delete" && path === "/") throw new BatonError("USAGE", "The root node / cannot be deleted");
  if (verb === "delete") return { do: "delete", path, version };
  const bytes = dataOf(data, values.dataFile);
  if (verb === "create") {
    const { parents, sequential } = values;
    return { do: "create", path, data: bytes ?? new Uint8Array(), parents, sequential };
  }
  if (bytes === null) {
    throw new BatonError(
      "USAGE",
      `baton fence zk set needs data, ${example}; - reads standard input, "" makes the node empty`,
    );
  }
  return { do: "set", path, data: bytes, version };
}

function checkPath(path: string, sequential: boolean): void {
  try {
    validateNodePath(path, sequential);
  } catch (thrown) {
    throw new BatonError("USAGE", errorMessage(thrown), { cause: thrown });
  }
}

function refuseFlags(verb: Verb, { version, dataFile, parents, sequential }: FenceZkCall["values"]): void {
  const misplaced = [
    [version !== undefined && verb === "create", "--version", "set and delete; a created node has version 0"],
    [dataFile !== undefined && verb === "delete", "--data-file", "set and create"],
    [parents && verb !== "create", "--parents", "create"],
    [sequential && verb !== "create", "--sequential", "create"],
  ] as const;
  for (const [is, flag, where] of misplaced) if (is) throw new BatonError("USAGE", `${flag} is for ${where}`);
}

/** Returns the data, or null if none was given. An empty argument is data. */
function dataOf(word: string | undefined, file: string | undefined): Uint8Array | null {
  if (word !== undefined && file !== undefined) {
    throw new BatonError("USAGE", `"${word}" and --data-file cannot be used together`);
  }
  const bytes = word === "-" || file !== undefined
    ? readData(word ?? file ?? "-")
    : word === undefined
    ? null
    : new TextEncoder().encode(word);
  if (bytes !== null && bytes.length > dataBytesMax) {
    throw new BatonError("BAD_DATA", `The data is longer than ${dataBytesMax} bytes, the maximum of a node`);
  }
  return bytes;
}

function readData(file: string): Uint8Array {
  if (file === "-" && wasStdinClosedAtStart()) {
    const why = 'it is closed; use "" for empty data';
    throw new BatonError("IO", `Cannot read the data from standard input: ${why}`);
  }
  try {
    const fd = file === "-" ? 0 : openSync(file, "r");
    try {
      return readBytesAtMost(fd, dataBytesMax);
    } finally {
      if (fd !== 0) closeSync(fd);
    }
  } catch (thrown) {
    const what = file === "-" ? "standard input" : `--data-file ${file}`;
    throw new BatonError("IO", `Cannot read the data from ${what}: ${errorReason(thrown)}`, { cause: thrown });
  }
}

function refuseReservedPath({ path }: FencedNodeOperation, { locks }: OuterLocks, root: string): void {
  const own = findReservedNodeFolder(path, root) ??
    locks.find((lock) => path === lock.path || path.startsWith(`${lock.path}/`))?.path;
  if (own === undefined) return;
  throw new BatonError(
    "USAGE",
    `"${path}" is reserved for baton ("${own}"): use another node, such as /app/state`,
  );
}

/** Returns the token of each lock, or null where it is unknown. */
function tokensOf({ values, io }: FenceZkCall, { locks }: OuterLocks): readonly (bigint | null)[] {
  if (values.token !== undefined) {
    if (locks.length === 1) return [parseFencingToken(values.token, "--token")];
    throw new BatonError("USAGE", `--token needs a job with one lock, but this job has ${locks.length}`);
  }
  const written = (io.env["BATON_FENCING_TOKEN"] ?? "").split("\n").filter(Boolean);
  return locks.map((_, index) => {
    const token = written[index];
    return token === undefined ? null : parseFencingToken(token, "BATON_FENCING_TOKEN");
  });
}

/** Returns this job's holder node of each lock. Throws STALE_TOKEN if the job no longer holds one of them. */
async function heldNodes(
  zk: ZooKeeper,
  { locks, ids }: OuterLocks,
  operation: FencedNodeOperation,
  tokens: readonly (bigint | null)[],
): Promise<HeldLockNode[]> {
  return await Promise.all(locks.map(async ({ name, path }, index) => {
    const holder = await findOwnHolderNode(zk, path, ids);
    if (holder === null) throw staleLockHolderError({ name, node: null }, operation);
    const token = tokens[index] ?? null;
    if (token !== null && holder.token !== null && token !== holder.token) {
      throw new BatonError(
        "STALE_TOKEN",
        `"${operation.path}" was not changed: ` +
          `lock "${name}" is held with token ${holder.token}, but this job has ${token}`,
      );
    }
    return { name, node: holder.node };
  }));
}

function isVerb(word: string): word is Verb {
  return verbs.some((verb) => verb === word);
}
