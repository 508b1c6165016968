import { expect, test } from "bun:test";
import { parsePubsubClientArguments } from "../../../../commands/pubsub/client_options.ts";

test("both orders of the words say the same", () => {
  const wanted = { id: "alice", operation: "put", topic: "news", rest: ["a.txt"] };
  expect(parsePubsubClientArguments(["alice", "put", "news", "a.txt"], undefined)).toMatchObject(wanted);
  expect(parsePubsubClientArguments(["put", "news", "a.txt"], "alice")).toMatchObject(wanted);
  expect(parsePubsubClientArguments(["alice", "put", "news", "a.txt"], "alice")).toMatchObject(wanted);
});

test("an id that is typed goes before one that the environment or a file names", () => {
  expect(parsePubsubClientArguments(["bob", "get", "news"], "alice", { isTyped: false })).toMatchObject({
    id: "bob",
    topic: "news",
  });
  expect(parsePubsubClientArguments(["get", "news"], "alice", { isTyped: false })).toMatchObject({
    id: "alice",
    topic: "news",
  });
});

test("an id or a topic may be called as an operation is", () => {
  expect(parsePubsubClientArguments(["get", "get", "put"], undefined)).toMatchObject({
    id: "get",
    operation: "get",
    topic: "put",
  });
  expect(parsePubsubClientArguments(["get", "put"], "alice")).toMatchObject({
    id: "alice",
    operation: "get",
    topic: "put",
  });
});

test.each([
  [["alice", "gett", "news"], undefined, 'unknown operation "gett", did you mean'],
  [["publish", "news", "hello"], undefined, '"publish" is read as the client ID, as in: ID put TOPIC'],
  [["alice", "consume", "news"], undefined, 'did you mean "subscribe"?'],
  [["alice", "get"], undefined, "TOPIC is missing"],
  [["alice", "get", "news", "more"], undefined, '"more" is an unexpected argument'],
  [["get", "news"], undefined, "missing client ID"],
  [["alice", "get", "news"], "bob", "given twice"],
  [[], undefined, "missing operation"],
])("%p with --id %p is refused", (words, id, sentence) => {
  expect(() => parsePubsubClientArguments(words, id)).toThrow(sentence);
});
