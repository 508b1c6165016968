/** The programs that are put to the test. */
import { join } from "node:path";
import process from "node:process";
import { batonCommand } from "../../../support/keeper_server.ts";
import type { ChildKind } from "../lock/contender.ts";
import type { Items } from "./items.ts";

export interface PoolWork {
  readonly items: Items;
  readonly jobs: number;
  readonly total: number | null;
  readonly childKind: ChildKind;
  readonly seconds: string;
  readonly querySeconds: number | null;
}

export interface PoolWrapper {
  readonly name: string;
  /** It knows in the end which items are done. */
  readonly remembers: boolean;
  command(component: string, work: PoolWork): string[];
}

const fixture = (name: string) => join(import.meta.dir, "../../../fixtures", name);

export const batonPool: PoolWrapper = {
  name: "baton pool",
  remembers: true,
  command: (component, { items, jobs, total, childKind, seconds, querySeconds }) => [
    ...batonCommand(),
    "pool",
    component,
    ...["-w", "60s", "--loop", "-j", String(jobs)],
    ...(querySeconds === null
      ? ["--items", `@${items.list}`, "--done-ttl", "1h"]
      : ["--query", queryLine(items, querySeconds)]),
    ...(total === null ? [] : ["--total", String(total)]),
    ...["--", "sh", fixture("pool_section.sh"), items.folder, "{item}", childKind, seconds],
  ],
};

const queryLine = ({ folder }: Items, seconds: number): string =>
  `sh '${fixture("pool_query.sh")}' '${folder}' ${seconds.toFixed(2)}`;

/** Locks item by item what was ready when it began: the harness must catch it. */
export const hastyPool: PoolWrapper = {
  name: "a loop over a list that it never doubts",
  remembers: false,
  command: (component, { items, childKind, seconds, querySeconds }) => [
    "sh",
    "-c",
    `folder=$1 kind=$2 seconds=$3 lock=$4; shift 4; for item in $(${queryLine(items, querySeconds ?? 0)}); do ` +
    `"$@" lock "$lock-$item" -- sh "${fixture("pool_section.sh")}" "$folder" "$item" "$kind" "$seconds"; done`,
    "sh",
    items.folder,
    childKind,
    seconds,
    component,
    ...batonCommand(),
  ],
};

/** Goes through the items one by one, each under a lock that it never looks at again: the harness must catch it. */
export const unwatchedPool: PoolWrapper = {
  name: "a pool that never watches its session",
  remembers: false,
  command: (component, { items, childKind, seconds }) => [
    "sh",
    "-c",
    "folder=$1 kind=$2 seconds=$3 lock=$4; shift 4; for item; do " +
    `"${process.execPath}" "${fixture("unwatched_lock.ts")}" "$lock-$item" -- ` +
    `sh "${fixture("pool_section.sh")}" "$folder" "$item" "$kind" "$seconds"; done`,
    "sh",
    items.folder,
    childKind,
    seconds,
    component,
    ...items.names,
  ],
};
