/** What is stored of a put's publisher, as decide_put.ts is to see it. Reads; changes nothing. */
import type { PutOperation } from "../../wire/pubsub/store_operations.ts";
import type { Client } from "./topic_client.ts";
import type { ClientTable } from "./client_table.ts";
import type { PutView } from "./decide_put.ts";
import { fingerprintOf } from "./message_fingerprint.ts";
import { PublisherWindow } from "./publisher_window.ts";

export function putView(
  put: PutOperation,
  { client, clients, last, full }: Pick<PutView, "last" | "full"> & {
    readonly client: Client;
    readonly clients: ClientTable;
  },
): PutView {
  const identity = put.fromSession ?? put.session;
  const number = identity?.number ?? 0;
  const stored = clients.windows(client).get(number) ?? null;
  const isForeign = stored !== null && identity !== null && stored.key !== identity.key;
  const isFuture = put.fromSession !== null && number > client.session;
  return {
    window: stored ?? new PublisherWindow(number, identity?.key ?? "", 0),
    windowGone: isForeign || isFuture || (number !== 0 && stored === null && number <= client.forgottenSession),
    sameKey: put.msgId === null ? null : clients.msgIds(client).get(put.msgId) ?? null,
    fingerprints: put.bodies.map(fingerprintOf),
    last,
    full,
  };
}
