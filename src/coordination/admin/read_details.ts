/** Reads holders and waiters of many locks, elections, barriers and gates. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { hiddenIfNoAuth, mapInBatches } from "../request_errors.ts";
import type { UseKind, UseList, UseSummary } from "./list_in_use.ts";
import { readUseStatus, type StatusKind, statusKinds, type UseStatus } from "./use_status.ts";

/** The number of locks that are read at the same time. */
const batchSize = 50;

export interface ReadDetailsOptions {
  readonly root: string;
  /** The maximum number of objects to read, those with the longest queues; the others have no details. */
  readonly max: number;
}

/** Returns the status by `kind name` of what is in use and not hidden by an ACL. The jobs of a pool are locks. */
export async function readDetails(
  zk: ZooKeeper,
  found: UseList,
  { root, max }: ReadDetailsOptions,
): Promise<ReadonlyMap<string, UseStatus>> {
  const wanted = statusKinds.flatMap((kind) => found[kind].filter(isVisible).map((one) => ({ ...one, kind })));
  const longest = wanted.length <= max
    ? wanted
    : wanted.sort((a, b) => (b.waiters ?? 0) - (a.waiters ?? 0)).slice(0, max);
  const read = await mapInBatches(
    longest,
    batchSize,
    ({ kind, name }) => hiddenIfNoAuth(readUseStatus(zk, { kind, name, root })),
  );
  return new Map(read.filter((one) => one !== "hidden").map((one) => [detailsKey(one.kind, one.name), one]));
}

export const detailsKey = (kind: UseKind | StatusKind, name: string): string => `${kind} ${name}`;

const isVisible = ({ holders, waiters }: UseSummary) => (holders ?? 0) + (waiters ?? 0) > 0;
