/** A request for a container: a node that the server deletes by itself some time after its last child is gone. */
import type { Acl, MultiRequest } from "../zookeeper/zookeeper.ts";
import { createFlag } from "../wire/jute/zookeeper_operations.ts";

/** For the transaction of its first child: one that never had a child would never be reaped. Empty without `data`. */
export function containerRequest(path: string, acl: Acl[], data: Uint8Array = new Uint8Array()): MultiRequest {
  return { type: "createContainer", path, data, acl, flags: createFlag.container };
}
