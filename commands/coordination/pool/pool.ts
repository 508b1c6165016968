/**
 * `baton pool`: its help and the choice of what to do. run_pool.ts runs items; pool_admin.ts has `status` and `clear`.
 */
import { stderrSentencePrinter } from "../../../src/base/terminal/io.ts";
import { startGuard } from "../../../src/base/process/guard/guard.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import type { ExitCode } from "../../../src/base/exit_codes.ts";
import { requireInputFile } from "../../input_files.ts";
import {
  findPoolComponent,
  poolCommandSettings,
  poolCommandSyntax,
  poolForms,
  readPoolOperation,
  readPoolOptions,
} from "./pool_options.ts";

export const poolCommand = defineCommand({
  name: "pool",
  summary: "run a command for each item of a list; calls on all machines share the items",
  usage: "COMPONENT [options] [COMMAND [ARGUMENT…]] | status COMPONENT [options] | clear COMPONENT [options]",
  details: [
    "A call locks the component, reads the list of items, locks up to -j items that no other call processes, " +
    "unlocks the component, and runs the command for each of these items. {} and {item} in the arguments, and " +
    "BATON_ITEM, are the item; if the command has none of them, the item is its last argument. In a shell command " +
    "(-c), {} is the item as one text, with or without quotation marks around it. Each item has its own lock, " +
    "which is released when all processes of its command have ended.",
    "With --items, the call starts the next item when one has ended, until it has run all that are free, and " +
    "prints a summary. With --query it runs one round, of at most -j items, and the next call, for example of the " +
    "same cron job on another machine, runs others. --one-round and --loop choose the other way. A call runs each " +
    "item of its list once.",
    "Calls with --items that run at the same time share their list, on all machines: an item that exited with 0 in " +
    "one of them is not run again in the others, also if its call has ended. An item that failed, or whose call was " +
    "killed, may run in another call. When the last of these calls has ended, the next call runs all items again; " +
    "with --done-ttl, it skips the items that exited with 0. A query has to omit the items that are done.",
    "Exit codes: 0 if all items exited with 0, or there was nothing to do; 123 if an item failed, as with xargs; " +
    "75 if other calls process all items, or as many items as --total allows; 81 if the component is locked. An " +
    "item that was stopped because its lock was lost, or whose command could not be started, gives the exit code " +
    "that baton lock has for it. Items that other calls are running, also one that is killed meanwhile, and items " +
    "that are left after --drain do not change the exit code: the summary counts them.",
    "A call waits while another call chooses items. A call that runs all items and has --total waits for a permit " +
    "while items are left. -w limits both waits; if items are left then, the exit code is 75.",
    "--joblog writes a tab-separated line for each item: sequence number, host, start in Unix time, duration in " +
    "seconds, 0, 0, exit code (128 + N for signal N), signal, command. With --retries, it is the last try.",
    "A component can have its own section in a configuration file, [pool.component.COMPONENT], with jobs, query, " +
    "total, done_ttl, retries and command. Then `baton pool COMPONENT` is enough. Options on the command line " +
    "override the section.",
    "By default, the component is the lock COMPONENT and an item is the lock COMPONENT/ITEM, so baton who, ls, " +
    "break and lock can be used with them. pool.component_path and pool.item_path set other paths. All calls that " +
    "run at the same time must have the same paths and --total; a call that differs exits with 78 before it reads " +
    "the list, and prints the difference.",
    "baton pool status COMPONENT prints running items, and with --done-ttl the results of items; with --items or " +
    "--query also free items.",
    "baton pool clear COMPONENT clears the results of items, so that they run again, also in calls that share a list " +
    "and start later; with --items or --query only " +
    "of these items. It also removes all stored data of a component that is no longer used.",
  ],
  examples: [
    ["baton pool thumbs --items a.png,b.png,c.png -j 2 -- ./thumbnail.sh", "process all items, two at the same time"],
    [
      "ls inbox | baton pool inbox --items - --joblog log -- ./process.sh inbox/{}",
      "process all files; awk '$7 != 0' log",
    ],
    [
      "baton pool inbox --items @list --done-ttl 1d --retries 2 -j 8 -c './process.sh {} >>log'",
      "run on many machines; each item once a day",
    ],
    [
      "baton pool import --query ./new_batches.sh -j 4 -- ./import.sh {item}",
      "for cron: process at most four items in each call",
    ],
    [
      "baton pool import --query ./new_batches.sh -j 4 --total 10 -- ./import.sh {}",
      "process at most ten items at the same time on all machines",
    ],
    ["baton pool SampleComponent", "use the section of the configuration file; for cron"],
    ["baton pool status import --query ./new_batches.sh", "print free, running, done and failed items"],
    ["baton pool clear inbox --items a.xml,b.xml", "let these two items run again within the day"],
  ],
  settings: poolCommandSettings,
  syntax: poolCommandSyntax,
  sectionOf: findPoolComponent,
  completes: "pools",
  completesFirst: { status: [], clear: [] },
  forms: poolForms,
  run: pool,
});

async function pool(call: CommandCall<typeof poolCommandSettings>): Promise<ExitCode> {
  const admin = readPoolOperation(call);
  if (admin !== null) {
    const { clearPool, showPoolStatus } = await import("./pool_admin.ts");
    return await (admin.operation === "status" ? showPoolStatus : clearPool)(admin, call);
  }
  const options = readPoolOptions(call);
  if (options.items.kind === "file") requireInputFile(options.items.file);
  // Starts in some milliseconds, in parallel with the following work.
  const guard = startGuard(stderrSentencePrinter(call.io));
  const { runPoolCommand } = await import("./run_pool.ts");
  return await runPoolCommand(options, call.io, guard);
}
