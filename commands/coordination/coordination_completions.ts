/** Lists the names of locks, elections, barriers, gates and pools for the completion of a shell. */
import { configSectionNames } from "../../src/base/config/section_names.ts";
import { coordinationFolderPath, decodeLockName } from "../../src/coordination/nodes/node_paths.ts";
import { poolComponentSettings } from "../../src/coordination/settings/command_settings.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { ProductCompletions } from "../product.ts";

const childrenOf = (folder: string) => ({
  async list(zk: ZooKeeper, root: string): Promise<string[]> {
    const { children } = await zk.getChildren(coordinationFolderPath(folder, root));
    return children.map(decodeLockName);
  },
});

export const coordinationCompletions: ProductCompletions = {
  locks: childrenOf("locks"),
  elections: childrenOf("elections"),
  barriers: childrenOf("barriers"),
  gates: childrenOf("gates"),
  pools: { ...childrenOf("pools"), configured: (files) => configSectionNames(poolComponentSettings, files) },
};
