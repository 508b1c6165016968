/** Whether a history is one that a client may have on servers that lose nothing. Pure. */
import type { Access, Append, Held } from "./history.ts";

/** What a call may end with besides an answer: it may have been done, or it was not done. */
export const unknown = "CONNECTIONLOSS";
export const notDone = "OPERATIONTIMEOUT";

/** Every node that was acknowledged is there under its name; what was not done is not; nothing is there twice. */
export function judgeAppends(appends: readonly Append[], found: readonly string[]): string[] {
  const failures: string[] = [];
  const namesOf = new Map<string, string[]>();
  for (const name of found) {
    const id = name.slice(0, name.lastIndexOf("-"));
    namesOf.set(id, [...namesOf.get(id) ?? [], name]);
  }
  for (const { id, outcome, name } of appends) {
    const names = namesOf.get(id) ?? [];
    if (names.length > 1) failures.push(`${id} was created ${names.length} times: ${names.join(", ")}`);
    if (outcome === "done" && names[0] !== name) {
      failures.push(`${id} was acknowledged as ${name}, and ${names[0]} is there`);
    }
    if (outcome === notDone && names.length > 0) {
      failures.push(`${id} was said not to be done, and ${names[0]} is there`);
    }
    namesOf.delete(id);
  }
  for (const id of namesOf.keys()) failures.push(`${id} is there, and nobody has asked for it`);
  return failures;
}

/** Acknowledged writes of a register have a version each, none is lost, and no more were done than were asked for. */
export function judgeRegister(
  node: string,
  accesses: readonly Access[],
  last: { readonly version: number; readonly mzxid: bigint },
): string[] {
  const failures: string[] = [];
  const writes = accesses.filter((access) => access.node === node && access.kind === "write");
  const versions = new Set<number>();
  for (const { stat } of writes) {
    if (stat === null) continue;
    if (versions.has(stat.version)) failures.push(`version ${stat.version} of ${node} was acknowledged twice`);
    versions.add(stat.version);
    if (stat.version > last.version || stat.mzxid > last.mzxid) {
      failures.push(`version ${stat.version} of ${node} was acknowledged, and the last one is ${last.version}`);
    }
  }
  const perhaps = writes.filter(({ outcome, stat }) => stat === null && outcome !== notDone).length;
  if (last.version > versions.size + perhaps) {
    failures.push(`${node} was written ${last.version} times: ${versions.size} acknowledged, ${perhaps} unknown`);
  }
  return failures;
}

/** No session reads what is older than what it has seen already, of this register or of any other. */
export function judgeOrder(accesses: readonly Access[]): string[] {
  const failures: string[] = [];
  const written = new Map<string, bigint[]>();
  for (const { node, stat } of accesses) {
    if (stat === null) continue;
    const zxids = written.get(node);
    if (zxids === undefined) written.set(node, [stat.mzxid]);
    else zxids.push(stat.mzxid);
  }
  for (const zxids of written.values()) zxids.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const seen = new Map<number, bigint>();
  for (const { session, node, kind, stat } of accesses) {
    if (stat === null) continue;
    const before = seen.get(session) ?? 0n;
    // Somebody has been told of a change in between, which this session's server must have known of.
    const missed = kind === "read" ? firstBehind(written.get(node) ?? [], stat.mzxid) : undefined;
    if (missed !== undefined && missed <= before) {
      failures.push(
        `session ${session} had seen 0x${before.toString(16)} and read ${node} as of 0x${stat.mzxid.toString(16)}, ` +
          `which was changed at 0x${missed.toString(16)}`,
      );
    }
    if (stat.mzxid > before) seen.set(session, stat.mzxid);
  }
  return failures;
}

/** The first of `sorted` that is greater. */
function firstBehind(sorted: readonly bigint[], zxid: bigint): bigint | undefined {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as bigint) > zxid) high = middle;
    else low = middle + 1;
  }
  return sorted[low];
}

/** One holder at a time, and tokens that grow with every grant. */
export function judgeHeld(held: readonly Held[]): string[] {
  const failures: string[] = [];
  const sorted = [...held].sort((a, b) => a.fromMs - b.fromMs);
  const latest = new Map<string, Held>();
  for (const one of sorted) {
    const before = latest.get(one.lock);
    if (before !== undefined && one.fromMs < before.toMs) {
      failures.push(`${one.lock} was held twice for ${(before.toMs - one.fromMs).toFixed(1)} ms`);
    }
    if (before !== undefined && one.token <= before.token) {
      failures.push(`${one.lock}: the token ${one.token} came behind ${before.token}`);
    }
    latest.set(one.lock, one);
  }
  return failures;
}

/** One watch: what became of what it watches, and what it told. */
export interface Watched {
  readonly path: string;
  /** What it has to tell; null when nothing was changed. */
  readonly expected: string | null;
  readonly told: readonly string[];
}

export function judgeWatches(watches: readonly Watched[]): string[] {
  return watches.flatMap(({ path, expected, told }) => {
    const wanted = expected === null ? [] : [expected];
    if (told.length === wanted.length && told.every((type, at) => type === wanted[at])) return [];
    return [`the watch of ${path} told [${told.join(", ")}] of [${wanted.join(", ")}]`];
  });
}
