import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { decodeTopicList, encodeTopicList } from "../../../../src/pubsub/wire/topic_list.ts";
import { property } from "../../../support/property.ts";

const topics = fc.array(fc.string({ unit: "binary", minLength: 1, maxLength: 20 }), { maxLength: 20 });

property("a list of topics is read as it was written", topics, (list) => {
  expect(decodeTopicList(encodeTopicList(list))).toEqual(list);
});

property("any bytes are a list of topics or none", fc.uint8Array({ maxLength: 60 }), (bytes) => {
  const list = decodeTopicList(bytes);
  if (list !== undefined) expect(decodeTopicList(encodeTopicList(list))).toEqual(list);
});

test("topics stand as the paper has them", () => {
  expect(new TextDecoder().decode(encodeTopicList(["news", "two words"]))).toBe("news two%20words");
  expect(decodeTopicList(undefined)).toEqual([]);
  expect(decodeTopicList(new TextEncoder().encode("news  sport"))).toBeUndefined();
});
