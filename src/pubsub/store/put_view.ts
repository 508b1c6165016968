/** The stored state of a put's publisher, as `decide_put.ts` needs it. */
import type { ClientTable } from "./client_table.ts";
import type { PutView } from "./decide_put.ts";
import { fingerprintMessage } from "./message_fingerprint.ts";
import { PublisherWindow } from "./publisher_window.ts";
import type { PutOperation } from "./store_operations.ts";
import type { TopicClient } from "./topic_client.ts";

/** Changes nothing. Throws Damaged. */
export function putView(
  put: PutOperation,
  { client, clients, last, fullReason: full }: Pick<PutView, "last" | "fullReason"> & {
    readonly client: TopicClient;
    readonly clients: ClientTable;
  },
): PutView {
  const identity = put.fromSession ?? put.session;
  const number = identity?.number ?? 0;
  const stored = clients.windowsOf(client).get(number) ?? null;
  const isOtherState = stored !== null && identity !== null && stored.key !== identity.key;
  const isFuture = put.fromSession !== null && number > client.session;
  return {
    window: stored ?? new PublisherWindow(number, identity?.key ?? "", 0),
    windowGone: isOtherState || isFuture || (number !== 0 && stored === null && number <= client.forgottenSession),
    sameMsgId: put.msgId === null ? null : clients.msgIdsOf(client).get(put.msgId) ?? null,
    fingerprints: put.bodies.map(fingerprintMessage),
    last,
    fullReason: full,
  };
}
