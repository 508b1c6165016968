import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BatonError } from "../../../../src/base/errors.ts";
import { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import { formatTopicNode } from "../../../../src/pubsub/ownership/topic_nodes.ts";
import { eventually } from "../../../support/eventually.ts";
import { HistoryWriter, readHistory } from "./history_file.ts";
import { NodeWatch, type WatchedTree } from "./node_watch.ts";

test("whose session has ended while it watched goes on in another one, and misses no owner", async () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-node-watch-"));
  try {
    let [sessions, looks] = [0, 0];
    const open = (): Promise<WatchedTree> => {
      const session = ++sessions;
      return Promise.resolve({
        getData() {
          if (++looks > 2 && session === 1) {
            return Promise.reject(new BatonError("SESSION_EXPIRED", "the session has ended"));
          }
          const node = {
            owner: `s${session}`,
            epoch: session,
            state: "stored",
            incarnation: "b",
            baseOffset: 0,
            source: null,
          } as const;
          return Promise.resolve({ data: formatTopicNode("news", node), stat: { version: session } });
        },
        [Symbol.asyncDispose]: () => Promise.resolve(),
      });
    };
    {
      using writer = new HistoryWriter(join(folder, "control.jsonl"));
      await using watch = new NodeWatch(open, { path: new PubsubPath("/faults"), topics: ["news"], writer });
      await eventually(() => watch.owners.get("news") === "s2", {
        withinMs: 10_000,
        what: "the second session's look",
      });
    }
    expect(readHistory(folder).nodes.map(({ node }) => [node.owner, node.epoch])).toEqual([["s1", 1], ["s2", 2]]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
