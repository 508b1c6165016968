import { expect, test } from "bun:test";
import { AnnouncedServers } from "../../../../src/pubsub/ownership/announced_servers.ts";
import { announceProcess } from "../../../../src/pubsub/ownership/announcements.ts";
import {
  parseAnnouncement,
  readAnnouncement,
  readAnnouncements,
} from "../../../../src/pubsub/ownership/process_announcement.ts";
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
  const endpoint = () => parseAnnouncement(tree.nodes.get(path)?.data ?? new Uint8Array(), path)?.endpoint;
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

const laterData = new TextEncoder().encode(JSON.stringify({ layout: 2, id: "s1", at: { host: "there" } }));
const laterMessage = 'server "s1" announces itself in a format that this version does not know (format 2, known: 1): ' +
  "upgrade baton on this host";

test("a server of a later version is not taken for one that does not run", async () => {
  const { client, come, clock } = town();
  const later = client();
  await come(later, "a", "tcp://one");
  await later.setData(path, laterData, -1);
  const zk = client();
  const parent = path.slice(0, path.lastIndexOf("/"));
  await announceProcess(zk, `${parent}/s2`, { id: "s2", endpoint: "tcp://two", storeId: "b" }, {
    clock,
    signal: new AbortController().signal,
  });
  const message = (error: unknown) => [(error as { code: string }).code, (error as Error).message];
  expect(await readAnnouncement(zk, path).catch(message)).toEqual(["CONFIG", laterMessage]);
  const { known, later: errors } = await readAnnouncements(zk, parent);
  expect([known.map(({ id }) => id), [...errors].map(([node, error]) => [node, error.message])]).toEqual([
    ["s2"],
    [[path, laterMessage]],
  ]);
  using list = await AnnouncedServers.read(zk, parent, clock);
  expect([[...list.servers.keys()], list.later.map((error) => error.message)]).toEqual([["s2"], [laterMessage]]);
});

test("an id that a server of a later version uses is waited for, and then refused with the reason", async () => {
  const { client, come, clock, told } = town();
  const later = client();
  await come(later, "a", "tcp://one");
  await later.setData(path, laterData, -1);
  const refused = come(client(), "a", "tcp://two").then(() => "", (thrown: Error) => thrown.message);
  await clock.advance(16_000);
  expect(told).toEqual([expect.stringContaining("its id is in use, at an unknown address; waiting up to 15 s")]);
  expect(await refused).toBe(laterMessage);
});
