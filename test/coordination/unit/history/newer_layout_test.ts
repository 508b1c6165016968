/** What a newer version of baton has written to a node is refused in words, and is not overwritten. */
import { expect, test } from "bun:test";
import { encodeJson } from "../../../../src/base/support/json_fields.ts";
import { parseBarrierState } from "../../../../src/coordination/barrier/barrier_state.ts";
import { parseLeaderGrants } from "../../../../src/coordination/election/election_state.ts";
import { readHistoryNode } from "../../../../src/coordination/history/history_log.ts";
import { parseLockState } from "../../../../src/coordination/lock/lock_state.ts";
import { parseTickState } from "../../../../src/coordination/tick/tick_state.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { parseTopicNode } from "../../../../src/pubsub/ownership/topic_nodes.ts";

const data = encodeJson({ layout: 2 });
const stat = { version: 3, ctime: 1n } as Awaited<ReturnType<ZooKeeper["getData"]>>["stat"];
const readers: Readonly<Record<string, () => unknown>> = {
  lock: () => parseLockState(data, "/baton/node"),
  election: () => parseLeaderGrants({ data, mzxid: 1n }, "/baton/node"),
  barrier: () => parseBarrierState(data, "/baton/node"),
  schedule: () => parseTickState(data, "/baton/node"),
  topic: () => parseTopicNode(data, "/baton/node"),
  history: () => readHistoryNode({ getData: () => Promise.resolve({ data, stat }) }, "/baton/node"),
};

for (const [kind, read] of Object.entries(readers)) {
  test(`the node of a newer ${kind} is refused, and the message says what to do`, async () => {
    const refused = await Promise.resolve().then(read).then(() => null, (error) => error);
    expect(refused).toMatchObject({ code: "CONFIG" });
    expect(refused.message).toMatch(
      /"\/baton\/node".*: its layout is 2, and this version reads 1: use the version that wrote it$/,
    );
  });
}
