/** Builds docs/json.md: every object that baton prints for programs, from its schema and a golden file. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { allJsonShapes, type JsonShape } from "../../commands/json_shapes/all_shapes.ts";

const goldens = join(import.meta.dirname ?? ".", "../../test/fixtures/json");

interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
}

export function jsonPage(table: (head: string[], rows: string[][]) => string[]): string[] {
  return allJsonShapes.flatMap((shape) => section(shape, table)).slice(0, -1);
}

function section(
  { from, shape, goldens: [golden] }: JsonShape,
  table: (head: string[], rows: string[][]) => string[],
): string[] {
  const schema = z.toJSONSchema(shape) as Schema;
  const rows = schema.anyOf === undefined
    ? fieldRows(schema)
    : schema.anyOf.flatMap((one) => [["", "", `**${one.description}**`], ...fieldRows(one)]);
  return [
    `## ${from}`,
    "",
    ...table(["field", "is", "meaning"], rows),
    "",
    "```json",
    readFileSync(join(goldens, `${golden}.json`), "utf8").trimEnd(),
    "```",
    "",
  ];
}

/** Returns a row for each field, including nested ones: `holders[].id`. */
function fieldRows(schema: Schema, before = ""): string[][] {
  return Object.entries(schema.properties ?? {}).filter(([name]) => name !== "version").flatMap(([name, field]) => {
    const isOptional = !(schema.required ?? []).includes(name);
    const path = `${before}${name}`;
    const kind = `${typeOf(field)}${isOptional ? ", may be missing" : ""}`;
    return [[`\`${path}\``, kind, field.description ?? ""], ...innerRows(field, path)];
  });
}

function innerRows(field: Schema, path: string): string[][] {
  const rows = [
    ...(field.anyOf ?? []).flatMap((one) => innerRows(one, path)),
    ...(field.items === undefined ? [] : innerRows(field.items, `${path}[]`)),
    ...fieldRows(field, `${path}.`),
  ];
  const seen = new Set<string>();
  return rows.filter(([name = ""]) => !seen.has(name) && seen.add(name));
}

function typeOf(field: Schema): string {
  if (field.anyOf !== undefined) return [...new Set(field.anyOf.map(typeOf))].join(" or ");
  if (field.const !== undefined) return JSON.stringify(field.const);
  if (field.enum !== undefined) return field.enum.map((one) => JSON.stringify(one)).join(", ");
  if (field.format === "date-time") return "time, RFC 3339";
  if (field.items !== undefined) return `list of ${typeOf(field.items)}`;
  return [field.type ?? "any"].flat().map((name) => names[name] ?? name).join(" or ");
}

/** Plain words for the types of JSON Schema. */
const names: Readonly<Record<string, string>> = { string: "text", integer: "number", boolean: "true or false" };
