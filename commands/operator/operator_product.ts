/** Lists the commands for operators. They show and change objects of all products. */
import type { CommandLoaders } from "../command.ts";
import type { Product } from "../product.ts";

export const operatorCommandsFor = (products: readonly Product[]): CommandLoaders => ({
  who: async () => (await import("./lists.ts")).whoCommandFor(products),
  ls: async () => (await import("./lists.ts")).lsCommandFor(products),
  metrics: async () => (await import("./metrics.ts")).metricsCommandFor(products),
  ui: async () => (await import("./ui.ts")).uiCommandFor(products),
  doctor: async () => (await import("./doctor.ts")).doctorCommandFor(products),
});
