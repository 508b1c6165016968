/** Reads the holders and waiters of an interop lock, for display. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { printable } from "../../support/text.ts";
import { type NodeInfo, parseNodeInfo } from "../holder_info.ts";
import type { LockStatus, LockStatusOptions } from "../lock/lock_status.ts";
import { nullIfNoNode } from "../request_errors.ts";
import type { InteropNode, InteropRecipe } from "./interop_node_names.ts";
import { interopHolderId, interopHolders, interopQueue, knownContenders } from "./interop_queue_position.ts";
import { interopPath } from "./interop_path.ts";

/** Maximum length of another program's node data in a display. */
const dataCharsMax = 100;

export interface InteropStatusOptions extends Pick<LockStatusOptions, "detailsMax"> {
  readonly recipe: InteropRecipe;
  /** True: throw CONFIG if the node has children and the recipe knows none of them, because it is no lock of this recipe. */
  readonly refusesOthers?: boolean;
}

/** Leaves out children that the recipe does not know. A lock that does not exist has neither holders nor waiters. */
export async function interopStatus(
  zk: ZooKeeper,
  name: string,
  { recipe, detailsMax = Number.POSITIVE_INFINITY, refusesOthers = false }: InteropStatusOptions,
): Promise<LockStatus> {
  const path = interopPath(name).lock;
  const [, list] = await Promise.all([zk.sync(path), nullIfNoNode(zk.getChildren(path))]);
  const children = list?.children ?? [];
  const queue = knownContenders(recipe, children);
  if (refusesOthers && queue.length === 0) interopQueue({ recipe, path, children });
  const holders = new Set(interopHolders(queue));
  const read = await Promise.all(
    queue.slice(0, detailsMax).map(async (node) => {
      const found = await nullIfNoNode(zk.getData(`${path}/${node.name}`));
      return found === null ? null : { node, found };
    }),
  );
  const nodes = read.filter((each) => each !== null).map(({ node, found }) => ({
    ...infoOf(node, found.data),
    isHolder: holders.has(node),
    holderId: interopHolderId(node),
    mode: node.isShared ? "shared" as const : "exclusive" as const,
    sessionId: found.stat.ephemeralOwner,
    fencingToken: found.stat.czxid,
  }));
  return {
    name,
    path,
    limit: null,
    holders: nodes.filter(({ isHolder }) => isHolder).map((each) => ({ ...each, slot: null })),
    waiters: nodes.filter(({ isHolder }) => !isHolder).map((each, index) => ({
      ...each,
      priority: 0,
      place: index + 1,
    })),
  };
}

/** Returns the description in baton's own nodes; for other nodes only the name and the data, if it is text. */
function infoOf(node: InteropNode, data: Uint8Array): NodeInfo {
  const info = parseNodeInfo(data);
  if (info.host !== "" || info.user !== "") return info;
  const text = new TextDecoder().decode(data.subarray(0, dataCharsMax));
  const isText = text !== "" && !/[\p{Cc}\ufffd]/u.test(text);
  return {
    ...info,
    reason: printable(isText ? `its node is ${node.name}, with "${text}"` : `its node is ${node.name}`),
  };
}
