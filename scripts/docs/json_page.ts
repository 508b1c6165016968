/** The page of `--json`, and a JSON Schema for each object, from the shapes that tests compare with golden files. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { allJsonShapes, type JsonShape } from "./json_shapes.ts";

const goldens = join(import.meta.dirname ?? ".", "../../test/fixtures/json");
/** The object that the page shows in full. */
const shown = "who";

const golden = ({ goldens: [name] }: JsonShape) => name;
const schemaPath = (shape: JsonShape) => `schema/${golden(shape)}.json`;

/** Returns the JSON Schema of each object, by its path below docs. */
export function jsonSchemaFiles(): Record<string, string> {
  return Object.fromEntries(
    allJsonShapes.map((shape) => [
      schemaPath(shape),
      `${JSON.stringify({ title: shape.from, ...z.toJSONSchema(shape.shape) }, null, 2)}\n`,
    ]),
  );
}

export function jsonPage(): string[] {
  return [
    ...allJsonShapes.map((shape) => `- \`${shape.from}\`: [schema](${schemaPath(shape)})`),
    "",
    "For example, `baton who nightly --json` (in one line):",
    "",
    "```json",
    readFileSync(join(goldens, `${shown}.json`), "utf8").trimEnd(),
    "```",
  ];
}
