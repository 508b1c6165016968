import { expect, test } from "bun:test";
import { validateNodePath } from "../../../../src/protocols/zookeeper/node_path.ts";
import { encodeNodeName, PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import { formatTopicNode, parseTopicNode } from "../../../../src/pubsub/ownership/topic_nodes.ts";
import { topicNodeAfterAssignment, topicNodeAfterTransfer } from "../../../../src/pubsub/ownership/topic_node.ts";

const path = new PubsubPath("/");

test("every name has a path of its own that servers take", () => {
  const names = [
    "a",
    "A",
    "a:1",
    "a_1",
    "a 1",
    "a%201",
    ".",
    "..",
    "%2E",
    "../x",
    "~",
    "\0",
    "\r\n",
    "é",
    "e\u0301",
    "😀",
  ];
  names.push("x".repeat(201), "x".repeat(202), `~${"0".repeat(64)}`, "é".repeat(512));
  const paths = names.map((name) => path.topic(name));
  for (const one of paths) validateNodePath(one);
  expect(new Set(paths.map((one) => one.toLowerCase())).size).toBeGreaterThanOrEqual(names.length - 1);
  expect(new Set(paths).size).toBe(names.length);
  for (const one of paths) expect(one.length).toBeLessThan(250);
  expect(path.topic("news")).toMatch(/^\/pubsub\/topics\/[0-9a-f]{2}\/news$/);
});

test("what is no name is refused with the reason", () => {
  for (const [name, why] of [["", "empty"], ["\ud800", "Unicode"], ["x".repeat(1025), "1025 bytes"]] as const) {
    expect(() => encodeNodeName(name)).toThrow(why);
  }
});

test("a topic's node reads as it was written, and what is not understood is refused", () => {
  const node = topicNodeAfterTransfer(topicNodeAfterAssignment("s1", "b"), "s2");
  const data = formatTopicNode("news", node);
  expect(parseTopicNode(data, "/x", "news")).toEqual({ ...node, topic: "news" });
  expect(() => parseTopicNode(data, "/x", "olds")).toThrow('it describes "news"');
  const text = new TextDecoder().decode(data);
  const edited = (from: string, to: string) => new TextEncoder().encode(text.replace(from, to));
  for (
    const [from, to] of [["{", "["], ['"layout":1', '"layout":2'], ['"epoch":2', '"epoch":0'], ["moving", "lost"], [
      '"epoch":1}',
      '"epoch":-1}',
    ], ['"owner":"s2"', '"owner":7']] as const
  ) {
    expect(() => parseTopicNode(edited(from, to), "/x")).toThrow('"/x" cannot be read as a topic node');
  }
});
