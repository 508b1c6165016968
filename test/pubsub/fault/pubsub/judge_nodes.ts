/** Whether a topic had one owner at a time: by its node's history, and by who answered. Pure. */
import type { Findings } from "./findings.ts";
import type { History, Operation } from "./history.ts";
import { at } from "./judge_puts.ts";

type Seen = History["nodes"][number];

export function judgeNodes({ nodes, operations, contents }: History, findings: Findings): void {
  const topics = new Map<string, Seen[]>();
  for (const seen of nodes) {
    const list = topics.get(seen.node.topic);
    if (list === undefined) topics.set(seen.node.topic, [seen]);
    else if (list.at(-1)?.node.version !== seen.node.version || list.at(-1)?.node.owner !== seen.node.owner) {
      list.push(seen);
    }
  }
  for (const list of topics.values()) judgeEpochs(list, findings);
  for (const operation of operations) {
    const list = topics.get(operation.topic);
    if (list !== undefined) judgeAnswer(list, operation, findings);
  }
  judgeContents(contents, findings);
}

function judgeEpochs(list: readonly Seen[], findings: Findings): void {
  const owners = new Map<string, Seen>();
  let newest: Seen | undefined;
  for (const seen of [...list].sort((a, b) => a.node.version - b.node.version)) {
    const { topic, owner, epoch, incarnation, version } = seen.node;
    const before = owners.get(`${incarnation} ${epoch}`);
    if (before !== undefined && before.node.owner !== owner) {
      findings.add(
        "one owner",
        () =>
          `epoch ${epoch} of "${topic}" belongs to ${before.node.owner} ` +
          `in version ${before.node.version} of its node, and to ` +
          `${owner} in version ${version}`,
      );
    }
    owners.set(`${incarnation} ${epoch}`, before ?? seen);
    const last = newest;
    if (last !== undefined && last.node.incarnation === incarnation && epoch < last.node.epoch) {
      findings.add(
        "one owner",
        () => `the epoch of "${topic}" fell from ${last.node.epoch} to ${epoch} in version ${version}`,
      );
    }
    newest = seen;
  }
}

/** Who watches the nodes may hear of a change so much later than the new owner acts on it, in milliseconds. */
const lagMs = 3000;

/**
 * Some time between question and answer it has to have been the owner, as far as the node was watched without a gap.
 */
function judgeAnswer(list: readonly Seen[], operation: Operation, findings: Findings): void {
  const { result: { by, outcome, status }, invokedAt, returnedAt, topic } = operation;
  if (by === undefined || outcome !== "ok" || (status !== "OK" && status !== "NO_MESSAGE")) return;
  const owners: string[] = [];
  // What was seen at one time was over before the next was seen.
  for (let place = firstAfter(list, invokedAt) - 1; place < list.length; place++) {
    const seen = list[Math.max(0, place)] as Seen;
    const [before, next] = [list[place - 1], list[place + 1]];
    if (before !== undefined && before.at > returnedAt + lagMs) break;
    owners.push(seen.node.owner);
    if (seen.node.owner === by) return;
    if (next !== undefined && next.node.version > seen.node.version + 1) return; // whose it was meanwhile nobody saw
  }
  findings.add(
    "one owner",
    () =>
      `${by} answered ${status} to ${operation.do} by ${operation.client} at "${topic}" between ${at(invokedAt)} and ` +
      `${at(returnedAt)}; its owner was ${[...new Set(owners)].join(", then ")}`,
  );
}

/** The place of the first that was seen at `time` or later. */
function firstAfter(list: readonly Seen[], time: number): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((list[middle]?.at ?? Infinity) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function judgeContents(contents: History["contents"], findings: Findings): void {
  const first = new Map<string, History["contents"][number]>();
  for (const content of contents) {
    const before = first.get(content.topic);
    first.set(content.topic, before ?? content);
    if (before === undefined || before.digest === content.digest) continue;
    findings.add(
      "handoff",
      () =>
        `"${content.topic}" was ${before.digest} in epoch ${before.epoch}, and is ${content.digest} in epoch ${content.epoch}`,
    );
  }
}
