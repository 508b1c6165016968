/** Creates the request for a container: a node that the server deletes some time after its last child is gone. */
import type { Acl, MultiRequest } from "../zookeeper/zookeeper.ts";
import { createFlag } from "../wire/jute/zookeeper_operations.ts";

/** Belongs into the transaction that creates the first child: the server never deletes a container that has had no child. */
export function containerRequest(path: string, acl: Acl[], data: Uint8Array = new Uint8Array()): MultiRequest {
  return { type: "createContainer", path, data, acl, flags: createFlag.container };
}
