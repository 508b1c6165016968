/** The commands for operators, which work across all products. */
import type { CommandLoaders } from "../command.ts";
import type { Product } from "../product.ts";

export const operatorCommandsFor = (products: readonly Product[]): CommandLoaders => ({
  who: async () => (await import("./operator_commands.ts")).whoCommand,
  ls: async () => (await import("./operator_commands.ts")).lsCommand,
  metrics: async () => (await import("./metrics.ts")).metricsCommand,
  top: async () => (await import("./top.ts")).topCommand,
  ui: async () => (await import("./ui.ts")).uiCommand,
  doctor: async () => (await import("./doctor.ts")).doctorCommandFor(products),
});
