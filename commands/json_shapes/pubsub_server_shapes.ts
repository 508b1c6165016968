/** JSON output about publish/subscribe servers, their topics and their data. */
import * as z from "zod";
import { count, version } from "./common_shapes.ts";

export const pubsubServersShape = z.strictObject({
  version,
  servers: z.array(z.strictObject({
    server: z.string().describe("its id"),
    endpoint: z.string().nullable().describe("null: it is not there, and its topics are unavailable"),
    draining: z.boolean().describe("it is given no new topics"),
    topics: z.array(z.strictObject({
      topic: z.string(),
      epoch: count.describe("grows with every change of owner"),
      state: z.enum(["new", "moving", "stored", "sealed"]).describe("stored: served, if its server runs"),
    })),
  })),
});
export type PubsubServersJson = z.infer<typeof pubsubServersShape>;

export const pubsubMovesShape = z.strictObject({
  version,
  moves: z.array(z.strictObject({
    topic: z.string(),
    from: z.string().nullable().describe("the server that had it"),
    to: z.string(),
    outcome: z.enum(["moved", "there", "kept", "unknown", "planned", "no topic"]).describe(
      "there: it was there before; kept: definitely not moved; unknown: no answer came; planned: with --dry-run",
    ),
    why: z.string().nullable().describe("for people: the words may change"),
  })),
});
export type PubsubMovesJson = z.infer<typeof pubsubMovesShape>;

export const pubsubForgottenShape = z.strictObject({
  version,
  server: z.string(),
  lost: z.array(z.string()).describe("topics that begin again, empty"),
  returned: z.array(z.string()).describe("topics that the server they came from has back, whole"),
});
export type PubsubForgottenJson = z.infer<typeof pubsubForgottenShape>;

export const pubsubRestoredShape = z.strictObject({
  version,
  server: z.string(),
  restored: z.array(z.string()).describe("topics that are as they were when the copy was made"),
  lost: z.array(z.string()).describe("topics that are not in the copy, and begin again, empty"),
  returned: z.array(z.string()).describe("topics that the server they came from has back, whole"),
  left: z.array(z.string()).describe("topics whose owner is unknown: unavailable, as before"),
});
export type PubsubRestoredJson = z.infer<typeof pubsubRestoredShape>;

export const pubsubVerifyShape = z.strictObject({
  version,
  folder: z.string(),
  topics: count,
  messages: count,
  clients: count,
  problems: z.array(z.string()).describe("none: all is well"),
});
export type PubsubVerifyJson = z.infer<typeof pubsubVerifyShape>;
