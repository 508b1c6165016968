import { expect, test } from "bun:test";
import { announceProcess, parseAnnouncement } from "../../../../src/pubsub/ownership/announcements.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";

const path = "/baton/pubsub/servers/s1";

function town() {
  const clock = new FakeClock();
  const tree = new FakeTree();
  const signal = new AbortController().signal;
  const told: string[] = [];
  const come = (zk: FakeZooKeeper, storeId: string, endpoint: string) =>
    announceProcess(zk, path, { id: "s1", endpoint, storeId }, {
      ...{ clock, signal, onProblem: ({ message }) => void told.push(message) },
    });
  const endpoint = () => parseAnnouncement(tree.nodes.get(path)?.data ?? new Uint8Array())?.endpoint;
  return { clock, come, endpoint, told, client: () => new FakeZooKeeper(tree, clock) };
}

test("the next life of a store takes the place of the one before at once", async () => {
  const { client, come, endpoint } = town();
  await come(client(), "a", "tcp://one");
  await come(client(), "a", "tcp://two");
  expect(endpoint()).toBe("tcp://two");
});

test("another store, or a copy of it elsewhere, waits for the end of the first session, and gives up", async () => {
  const { client, come, endpoint, clock, told } = town();
  const first = client();
  await come(first, "a here", "tcp://one");
  const refused = come(client(), "a there", "tcp://two").then(() => "", (thrown: Error) => thrown.message);
  await clock.advance(100);
  expect(told).toEqual([
    expect.stringMatching(/its id is in use, at tcp:\/\/one; waiting up to 15 s/),
  ]);
  await clock.advance(16_000);
  expect(told).toHaveLength(1);
  expect(await refused).toContain("another process uses this id, at tcp://one");
  const patient = come(client(), "a there", "tcp://two");
  await clock.advance(5000);
  expect(endpoint()).toBe("tcp://one");
  first.expire();
  await clock.advance(1000);
  await patient;
  expect(endpoint()).toBe("tcp://two");
});

test("an operator who gives up what a server had is waited for", async () => {
  const { client, come, endpoint, clock, told } = town();
  const operator = client();
  await come(operator, "a", "tcp://one");
  await operator.setData(
    path,
    new TextEncoder().encode(JSON.stringify({ layout: 1, operation: "forget", server: "s1" })),
    -1,
  );
  const coming = come(client(), "a", "tcp://two");
  await clock.advance(60_000);
  expect(endpoint()).toBeUndefined();
  expect(told).toEqual([expect.stringContaining("an operator's forget or restore is running")]);
  operator.expire();
  await clock.advance(1000);
  await coming;
  expect(endpoint()).toBe("tcp://two");
});
