import { expect, test } from "bun:test";
import { ClientAcl } from "../../../src/pubsub/client_acl.ts";
import type { PubsubMessage } from "../../../src/pubsub/wire/pubsub_messages.ts";

const [one, two, three] = ["1", "2", "3"].map((digit) => digit.repeat(40)) as [string, string, string];
const acl = ClientAcl.parse(
  `# who may do what\n${one} alice,app-* news,sport/* get\n${one} alice out put\n\n${two} * * get,put,list\n`,
  "acl",
);

const get = (sender: string, topic: string): PubsubMessage => ({ name: "GET", sender, topic, last: -1 });
const put = (sender: string, topic: string): PubsubMessage => ({ name: "PUT", sender, topic, counter: 1 });

test("a key speaks as its ids, at its topics, and does what its line says", () => {
  expect(acl.refusalReason(one, get("alice", "news"))).toBeNull();
  expect(acl.refusalReason(one, get("app-7", "sport/tennis"))).toBeNull();
  expect(acl.refusalReason(one, put("alice", "out"))).toBeNull();
  expect(acl.refusalReason(two, put("anybody", "anything"))).toBeNull();
  expect(acl.refusalReason(two, { name: "TOPICS", sender: "x" })).toBeNull();
  expect(acl.refusalReason(one, { name: "HELLO", sender: "whoever" })).toBeNull();
});

test("everything else is refused with a sentence", () => {
  const refused: [string, PubsubMessage, string][] = [
    [one, get("bob", "news"), 'may not use the client ID "bob"'],
    [one, get("alice", "new"), 'may not get at topic "new"'],
    [one, get("alice", "out"), "may not get"],
    [one, put("app-7", "out"), "may not put"],
    [one, { name: "TOPICS", sender: "alice" }, "may not list"],
    [two, { name: "MERGE", sender: "x", topic: "news", address: "s2" }, "MERGE is for servers"],
    [two, { name: "TRANSFER", sender: "x", topic: "news" }, "TRANSFER is for servers"],
    [two, { name: "PERIODIC", sender: "x" }, "PERIODIC is for servers"],
    [three, get("alice", "news"), "may not use the client ID"],
  ];
  for (const [key, message, why] of refused) expect(acl.refusalReason(key, message)).toContain(why);
  expect([acl.hasKey(one), acl.hasKey(three)]).toEqual([true, false]);
});

test("a file that makes no sense is refused, and the line named", () => {
  for (const line of ["short * * get", `${one} * *`, `${one} * * gets`, `${one} a%2 * get`, `${one} * * get more`]) {
    expect(() => ClientAcl.parse(`# one\n${line}`, "acl")).toThrow("acl, line 2");
  }
});
