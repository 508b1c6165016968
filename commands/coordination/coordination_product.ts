/** Coordination: locks, elections, barriers, pools, schedules, and the keeper. */
import type { Product } from "../product.ts";
import { lockCommand } from "./lock/lock.ts";

/**
 * The product of coordination. `lock` is loaded immediately, because it runs most often. The other commands are loaded
 * in a few groups that share code, because loading each command separately would take a millisecond longer.
 */
export const coordinationProduct: Product = {
  name: "coordination",
  commands: {
    lock: () => Promise.resolve(lockCommand),
    hold: async () => (await import("./hold/hold.ts")).holdCommand,
    release: async () => (await import("./hold/release.ts")).releaseCommand,
    elect: async () => (await import("./election/election_commands.ts")).electCommand,
    leader: async () => (await import("./election/election_commands.ts")).leaderCommand,
    forward: async () => (await import("./election/election_commands.ts")).forwardCommand,
    resign: async () => (await import("./election/election_commands.ts")).resignCommand,
    barrier: async () => (await import("./barrier/barrier.ts")).barrierCommand,
    pool: async () => (await import("./pool/pool.ts")).poolCommand,
    explain: async () => (await import("./looking/explain_command.ts")).explainCommand,
    history: async () => (await import("./looking/history.ts")).historyCommand,
    cron: async () => (await import("./cron/cron.ts")).cronCommand,
    break: async () => (await import("./looking/break.ts")).breakCommand,
    check: async () => (await import("./check/check.ts")).checkCommand,
    fence: async () => (await import("./fence/fence.ts")).fenceCommand,
    keeper: async () => (await import("./keeper/keeper.ts")).keeperCommand,
  },
  internalCommands: new Map([[
    "__holder",
    async (io) => (await import("./hold/holder.ts")).runHolderProcess(io),
  ]]),
  settings: async () => (await import("../../src/coordination/settings/setting_tables.ts")).coordinationTables,
  checks: async () => (await import("./coordination_checks.ts")).coordinationChecks,
  completions: async () => (await import("./coordination_completions.ts")).coordinationCompletions,
  help: async () => (await import("./coordination_help.ts")).coordinationHelp,
  doctor: async () => (await import("./coordination_doctor.ts")).coordinationDoctor,
  view: async () => (await import("./coordination_view.ts")).coordinationView,
};
