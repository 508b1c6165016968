/** The programs that are put to the test. */
import { join } from "node:path";
import process from "node:process";
import { batonCommand } from "../../support/keeper_server.ts";
import type { ChildKind } from "../lock/contender.ts";
import type { Items } from "./items.ts";

export interface PoolWork {
  readonly items: Items;
  readonly jobs: number;
  readonly total: number | null;
  readonly childKind: ChildKind;
  readonly seconds: string;
}

export interface PoolWrapper {
  readonly name: string;
  /** It knows in the end which items are done. */
  readonly remembers: boolean;
  command(component: string, work: PoolWork): string[];
}

const fixture = (name: string) => join(import.meta.dir, "../../fixtures", name);

export const batonPool: PoolWrapper = {
  name: "baton pool",
  remembers: true,
  command: (component, { items, jobs, total, childKind, seconds }) => [
    ...batonCommand(),
    "pool",
    component,
    ...["-w", "60s", "--items", `@${items.list}`, "--loop", "-j", String(jobs), "--done-ttl", "1h"],
    ...(total === null ? [] : ["--total", String(total)]),
    ...["--", "sh", fixture("pool_section.sh"), items.folder, "{item}", childKind, seconds],
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
