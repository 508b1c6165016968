/** The keys of all JSON output have one style, so that a program never guesses. */
import { expect, test } from "bun:test";
import * as z from "zod";
import { allJsonShapes } from "../../../../scripts/docs/json_shapes.ts";

/** The names of all properties in a JSON schema. */
function keysIn(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([name, inner]) => [
    ...(name === "properties" ? Object.keys(inner as object) : []),
    ...keysIn(inner),
  ]);
}

test("keys are snake_case", () => {
  const keys = new Set(allJsonShapes.flatMap(({ shape }) => keysIn(z.toJSONSchema(shape))));
  expect(keys.size).toBeGreaterThan(50);
  expect([...keys].filter((key) => !/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(key))).toEqual([]);
});
