/** The ACL that lets everybody do everything; ZooDefs.Ids.OPEN_ACL_UNSAFE. */
import { permission } from "./zookeeper_operations.ts";
import type { Acl } from "./zookeeper_records.ts";

/** One object for all, so that it costs nothing and is told by identity: not to be changed. */
export const openAcl: Acl[] = [{ perms: permission.all, id: { scheme: "world", id: "anyone" } }];
