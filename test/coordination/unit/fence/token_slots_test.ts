import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  formatFencingTokenSlot,
  parseFencingToken,
  readFencingTokenSlots,
  tokenSlotBytes,
} from "../../../../src/coordination/fence/token_slots.ts";
import { property } from "../../../support/property.ts";

const line = (token: bigint) => formatFencingTokenSlot({ token, by: "root@db1:812", at: "2026-01-02T03:04:05.678Z" });

/** Writes as the store does, at most `bytes` of it. */
function write(text: string, token: bigint, bytes = tokenSlotBytes): string {
  const at = readFencingTokenSlots(text, "store").next * tokenSlotBytes;
  const cut = line(token).slice(0, bytes);
  return text.slice(0, at).padEnd(at, "\0") + cut + text.slice(at + cut.length);
}

const token = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });

property("the last token that was written whole is the highest", fc.array(token, { minLength: 1 }), (tokens) => {
  let text = "";
  let highest = -1n;
  for (const one of tokens) {
    if (one <= highest) continue;
    text = write(text, one);
    highest = one;
    expect(readFencingTokenSlots(text, "store").highest).toMatchObject({ token: highest, by: "root@db1:812" });
  }
});

property(
  "a write that is cut short anywhere loses nothing that was written before",
  fc.tuple(fc.uniqueArray(token, { minLength: 1, maxLength: 5 }), fc.nat(tokenSlotBytes - 1)),
  ([tokens, bytes]) => {
    const rising = tokens.sort((a, b) => (a < b ? -1 : 1));
    const last = rising.pop() ?? 0n;
    const before = rising.reduce((text, one) => write(text, one), "");
    const seen = readFencingTokenSlots(write(before, last, bytes), "store").highest?.token ?? null;
    // A line that lacks its end alone says the same as the whole one where the old line ends so too.
    expect([rising.at(-1) ?? null, last]).toContain(seen);
    expect(readFencingTokenSlots(write(write(before, last, bytes), last), "store").highest?.token).toBe(last);
  },
);

property("a line has its length, whoever brought the token", fc.string({ unit: "binary" }), (by) => {
  const written = formatFencingTokenSlot({ token: 7n, by, at: new Date(0).toISOString() });
  expect(Buffer.byteLength(written)).toBe(tokenSlotBytes);
  expect(readFencingTokenSlots(written, "store").highest?.token).toBe(7n);
});

describe("a file that is no store", () => {
  for (const text of ["hello\n", "\0".repeat(600), "baton-fence 2 1", "x".repeat(512)]) {
    test(`is refused: ${JSON.stringify(text.slice(0, 15))}`, () => {
      expect(() => readFencingTokenSlots(text, "/srv/data")).toThrow('"/srv/data" is not a fencing store');
    });
  }
});

test("a store that has lost its highest token is none that never had one", () => {
  const damaged = (text: string, ...places: number[]) =>
    places.reduce((whole, at) => `${whole.slice(0, at)}?${whole.slice(at + 1)}`, text);
  const both = line(5n) + line(9n);
  const lost = [
    damaged(both, 20, 280),
    damaged(both, 3, 280),
    both.slice(0, 300).replace("5", "?"),
    damaged(line(5n), 20),
  ];
  for (const text of lost) {
    expect(() => readFencingTokenSlots(text, "/srv/fence")).toThrow(
      'Fencing store "/srv/fence" is damaged and its highest token is lost: ' +
        "delete the file when no process with an older token",
    );
  }
  expect(readFencingTokenSlots(damaged(both, 20), "store").highest?.token).toBe(9n);
});

test("a token is a whole number of 64 bits", () => {
  expect(parseFencingToken("18446744073709551615", "--token")).toBe(18446744073709551615n);
  for (const wrong of ["", "-1", "1.5", "0x10", "18446744073709551616", "1 "]) {
    expect(() => parseFencingToken(wrong, "--token")).toThrow("is not a fencing token");
  }
});
