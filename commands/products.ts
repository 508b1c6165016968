/** Lists the products, and loads their commands and settings. To add a product, add a line here. */
import type { SettingTable } from "../src/base/config/setting.ts";
import type { CommandLoaders } from "./command.ts";
import { coordinationProduct } from "./coordination/coordination_product.ts";
import { operatorCommandsFor } from "./operator/operator_product.ts";
import type { AllProductSettings, Product } from "./product.ts";
import { pubsubProduct } from "./pubsub/pubsub_product.ts";
import { retryProduct } from "./retry/retry_product.ts";

/**
 * The products in their order of precedence: if settings of two products have the same flag, `baton config show` gives
 * the flag to the later product.
 */
export const products: readonly Product[] = [coordinationProduct, pubsubProduct, retryProduct];

/**
 * The functions that load each command. The first word of a two-word name, such as `pubsub`, is a group and not a
 * command by itself.
 */
export const commandLoaders: CommandLoaders = {
  ...Object.assign({}, ...products.map(({ commands }) => commands)),
  ...operatorCommandsFor(products),
  completion: async () => (await import("./program/completion/completion.ts")).completionCommand,
  config: async () => (await import("./program/config.ts")).configCommandFor(products, await loadProductSettings()),
  version: async () => (await import("./program/version.ts")).versionCommandFor(loadProductSettings),
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
