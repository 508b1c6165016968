/** What release 0.1.0 has written, copied for a shell session of this version. */
import { chmodSync, cpSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { BatonSession } from "./baton_session.ts";

const folder = join(import.meta.dirname, "../fixtures/release_0.1.0");

export const readReleaseFile = (name: string): string => readFileSync(join(folder, name), "utf8");

export function readReleaseLines<T>(name: string): T[] {
  return readReleaseFile(name).trimEnd().split("\n").map((line) => JSON.parse(line) as T);
}

/** Copies a file or a folder. Git keeps no modes, and the files of a store are for one user. */
export function copyReleaseFiles(name: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  cpSync(join(folder, name), to, { recursive: true, filter: () => true });
  chmodSync(to, 0o700);
}

/** A session with the data of the release's keeper, topics, clients and retries. */
export function releaseSession(): BatonSession {
  const session = new BatonSession({ BATON_SERVERS: "embedded" });
  copyReleaseFiles("keeper", session.keeperFolder);
  for (const name of ["topics", "client-states", "retry"]) copyReleaseFiles(name, session.path(name));
  return session;
}

interface ReleaseNode {
  readonly path: string;
  readonly isEphemeral: boolean;
  readonly data: string;
}

/** Creates the holders and waiters that the release had, as nodes of this session, in the order in which they came. */
export async function createReleaseHolders(zk: ZooKeeper, below: string): Promise<void> {
  const nodes = readReleaseLines<ReleaseNode>("nodes.jsonl")
    .filter(({ path, isEphemeral }) => isEphemeral && path.startsWith(below));
  const sinceMs = ({ data }: ReleaseNode) => Number(JSON.parse(data).sinceMs ?? 0);
  for (const { path, data } of nodes.toSorted((left, right) => sinceMs(left) - sinceMs(right))) {
    await createAbove(zk, path);
    await zk.create(path, new TextEncoder().encode(data), { mode: "ephemeral" });
  }
}

/** The keeper may have removed containers that were empty. */
async function createAbove(zk: ZooKeeper, path: string): Promise<void> {
  const above = dirname(path);
  if (await zk.exists(above) !== null) return;
  await createAbove(zk, above);
  const node = readReleaseLines<ReleaseNode>("nodes.jsonl").find((one) => one.path === above);
  await zk.create(above, new TextEncoder().encode(node?.data));
}
