/** The list of products, and what the program makes of it. A further product is one more line here. */
import type { SettingTable } from "../src/base/config/setting.ts";
import type { CommandLoaders } from "./command.ts";
import { coordinationProduct } from "./coordination/coordination_product.ts";
import { operatorCommandsFor } from "./operator/operator_product.ts";
import type { AllProductSettings, Product } from "./product.ts";
import { pubsubProduct } from "./pubsub/pubsub_product.ts";
import { retryProduct } from "./retry/retry_product.ts";

/** Where two settings share a flag, that of the later product takes it in `baton config show`. */
export const products: readonly Product[] = [coordinationProduct, pubsubProduct, retryProduct];

/** All commands. A command of two words belongs to a group; the first word alone is no command. */
export const commandLoaders: CommandLoaders = {
  ...Object.assign({}, ...products.map(({ commands }) => commands)),
  ...operatorCommandsFor(products),
  completion: async () => (await import("./program/completion/completion.ts")).completionCommand,
  config: async () => (await import("./program/config.ts")).configCommandFor(products, await loadProductSettings()),
  version: async () => (await import("./program/version.ts")).versionCommand,
  help: async () =>
    (await import("./program/help/help_command.ts")).helpCommandFor(
      products,
      commandLoaders,
      await loadProductSettings(),
    ),
};

let loaded: Promise<AllProductSettings> | null = null;

export function loadProductSettings(): Promise<AllProductSettings> {
  loaded ??= Promise.all(products.map((product) => product.settings())).then((tables) => {
    const all: SettingTable = Object.assign({}, ...tables.map((table) => table.all));
    return { all, inFiles: Object.assign({}, all, ...tables.map(({ fileOnly }) => fileOnly)) };
  });
  return loaded;
}
