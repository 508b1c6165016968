import { expect, test } from "bun:test";
import { newGuid } from "../../../../src/base/support/guid.ts";

test("names are 128 bits in hexadecimal and do not repeat", () => {
  const names = Array.from({ length: 1000 }, newGuid);
  for (const name of names) expect(name).toMatch(/^[0-9a-f]{32}$/);
  expect(new Set(names).size).toBe(names.length);
});
