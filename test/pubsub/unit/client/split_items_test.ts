import { expect, test } from "bun:test";
import { splitInputIntoMessages } from "../../../../src/pubsub/client/split_items.ts";

async function* pieces(text: string, length: number): AsyncGenerator<Uint8Array, void, void> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.byteLength; at += length) yield bytes.subarray(at, at + length);
  await Promise.resolve();
}

async function split(text: string, length: number): Promise<string[]> {
  const items: string[] = [];
  for await (const some of splitInputIntoMessages(pieces(text, length), 10)) {
    items.push(...some.map((item) => new TextDecoder().decode(item)));
  }
  return items;
}

test("the same messages come out, wherever the chunks are cut", async () => {
  for (
    const [text, items] of [
      ["", []],
      ["\n", [""]],
      ["one", ["one"]],
      ["one\ntwo\n", ["one", "two"]],
      ["\n\nthree\r\nfour", ["", "", "three\r", "four"]],
    ] as const
  ) {
    for (let length = 1; length <= text.length + 1; length++) expect(await split(text, length)).toEqual([...items]);
  }
});
