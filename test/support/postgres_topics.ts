/** Topics in a database that servers share, and the operations and responses of a test in short. */
import { expect } from "bun:test";
import { migrateDatabase } from "../../src/base/postgres/database_schema.ts";
import { postgresTopicTables } from "../../src/pubsub/store/postgres/postgres_tables.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { PostgresServer } from "./postgres_server.ts";
import { databaseAddress, PostgresTopicStore } from "./postgres_topic_store.ts";

export const connecting = { clock: systemClock(), name: "test" };
export const put = (counter: number, body: string, more: Record<string, unknown> = {}) => ({
  kind: "put",
  counter,
  bodies: [new TextEncoder().encode(body)],
  ...more,
});
export const get = { kind: "get", client: "alice" };
export const subscribe = { kind: "subscribe", client: "alice" };
export const codes = (responses: readonly { readonly code: string }[]) => responses.map(({ code }) => code);
export const texts = (responses: readonly { readonly messages?: readonly { readonly body: Uint8Array }[] }[]) =>
  responses.flatMap(({ messages = [] }) => messages.map(({ body }) => new TextDecoder().decode(body)));

let schemas = 0;

/** A new schema with the tables. */
export async function newSchema(server: PostgresServer): Promise<string> {
  const schema = `store${++schemas}`;
  await migrateDatabase(databaseAddress(server.url, schema), { ...connecting, tables: postgresTopicTables });
  return schema;
}

/** A new schema with the topics `news` and `other`, which s1 has opened at epoch 1; alice is subscribed. */
export async function newTopics(
  server: PostgresServer,
  url = server.url,
): Promise<{ schema: string; s1: PostgresTopicStore }> {
  const schema = await newSchema(server);
  const s1 = new PostgresTopicStore(databaseAddress(url, schema), "s1");
  for (const topic of ["news", "other"]) {
    await s1.create(topic);
    expect(codes(await s1.execute({ ...subscribe, topic }))).toEqual(["OK"]);
  }
  return { schema, s1 };
}
