import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { headerFields, messageFields } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import { statusCodes } from "../../../../src/pubsub/wire/status_codes.ts";

const page = readFileSync(join(import.meta.dir, "../../../../docs/protocol/pubsub.md"), "utf8");
/** What stands in the first column of its tables. */
const rows = new Set([...page.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name));

test.each([["messages", Object.keys(messageFields)], ["headers", Object.keys(headerFields)], [
  "status codes",
  statusCodes,
]])(
  "docs/protocol/pubsub.md has a row for each of the %s",
  (_, names) => expect(names.filter((name) => !rows.has(name))).toEqual([]),
);

test("docs/protocol/pubsub.md has no message and no line that does not exist", () => {
  const known = new Set<string>([...Object.keys(messageFields), ...Object.keys(headerFields), ...statusCodes]);
  const ofServer = ["topics", "messages", "clients", "windows", "resolved", "msg_ids"];
  const tables = [...ofServer, "client", "places", "intents", "inputs", "registrations"];
  expect([...rows].filter((name) => name !== undefined && !known.has(name) && !tables.includes(name))).toEqual([]);
});
