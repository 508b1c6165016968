/** `baton pool`: its words. What it does is in run_pool.ts and pool_status.ts. */
import { lowerJitPriority } from "../../src/process/spawn/lower_jit_priority.ts";
import { startGuard } from "../../src/process/guard/guard.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";
import { componentOf, poolCommandSettings, poolForms, poolOperationOf, poolOptionsOf } from "./pool_options.ts";

export const poolCommand = defineCommand({
  name: "pool",
  summary: "run a command for each free item of a list, some at a time",
  usage: "COMPONENT [options] [-- COMMAND [ARGUMENT…]] | status COMPONENT [options] | forget COMPONENT [options]",
  details: [
    "Locks the component, reads the items, locks up to -j of those that nobody works on, unlocks the component, and runs " +
    "the command for each of them; {item} and {} in its words, and BATON_ITEM, are the item. Each runs under a lock of " +
    "its own, which is given back when everything it has started is dead. So a job of cron can run everywhere at once.",
    "One call runs -j items; with --loop it goes on until none is left. It runs each item of its list once: where several " +
    "calls go through the same list, --done-ttl has them skip what another has done, or the query names it no more.",
    "Exits with 0 when all items that were taken have ended with 0, or there was nothing to do; with 1 when some have " +
    "failed, 75 when others work on all there is or as many as --total run already, 81 when the component is locked.",
    "A call that comes while another one chooses items waits for it. With --loop and --total a call waits for a permit as " +
    "long as items are left. -w limits both waits; what is left then is 75.",
    "A component may have a section of its own in a configuration file, [pool.component.COMPONENT] with jobs, query, total, done_ttl, " +
    "retries and command: then `baton pool COMPONENT` is all there is to type. What is typed goes before the section.",
    "By default the component is the lock COMPONENT and an item the lock COMPONENT/ITEM: baton who, ls, break and lock " +
    "know them. pool.component_path and pool.item_path say otherwise, the same in all calls: one that has other paths, or " +
    "another --total, than those that run is refused with 78 before it lists anything, and says what differs, and from whom.",
    "baton pool status COMPONENT lists who works on what, and with --done-ttl how items have ended; with --items or " +
    "--query also what is free.",
    "baton pool forget COMPONENT forgets how items have ended, so that they run again; with --items or --query only " +
    "those. A component that is given up leaves nothing behind then.",
  ],
  examples: [
    ["baton pool import --query ./new_batches.sh -j 4 -- ./import.sh {item}", "four at a time, from cron"],
    [
      "ls inbox | baton pool inbox --items - --loop -- ./process.sh inbox/{}",
      "one after the other, until none is left",
    ],
    [
      "baton pool inbox --items @list --loop --done-ttl 1d --retries 2 -j 8 -- ./process.sh {}",
      "on many machines at once; each item once a day",
    ],
    [
      "baton pool import --query ./new_batches.sh -j 4 --total 10 -- ./import.sh {}",
      "ten at once in the whole cluster",
    ],
    ["baton pool SampleComponent", "as its section of the configuration file says; for cron"],
    ["baton pool status import --query ./new_batches.sh", "what is free, running, done and failed"],
    ["baton pool forget inbox --items a.xml,b.xml", "have these two run again within the day"],
  ],
  settings: poolCommandSettings,
  sectionOf: componentOf,
  completes: "pools",
  completesFirst: { status: [], forget: [] },
  forms: poolForms,
  run: pool,
});

async function pool(call: Call<typeof poolCommandSettings>): Promise<ExitCode> {
  const asked = poolOperationOf(call);
  // Whoever only looks does not load what runs items.
  if (asked?.deed === "status") return await (await import("./pool_status.ts")).showPoolStatus(asked, call);
  if (asked?.deed === "forget") return await (await import("./pool_forget.ts")).forgetPoolItems(asked, call);
  const options = poolOptionsOf(call);
  lowerJitPriority();
  const guard = startGuard(); // its start, of some milliseconds, runs beside everything that comes now
  const { poolDependencies, runPoolCommand } = await import("./run_pool.ts");
  return await runPoolCommand(options, call.io, poolDependencies(guard));
}
