/**
 * `baton pool`: its help, and the choice of the operation. run_pool.ts runs items; pool_admin.ts has `status` and
 * `clear`.
 */
import { stderrSentencePrinter } from "../../../src/base/terminal/io.ts";
import { startGuard } from "../../../src/base/process/guard/guard.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import type { ExitCode } from "../../../src/base/exit_codes.ts";
import { requireInputFile } from "../../input_files.ts";
import {
  findPoolComponent,
  poolCommandForms,
  poolCommandSettings,
  poolCommandSyntax,
  readPoolOperation,
  readPoolOptions,
} from "./pool_options.ts";

export const poolCommand = defineCommand({
  name: "pool",
  summary: "run a command for each item of a list, which several calls can share",
  usage: "COMPONENT [options] [COMMAND [ARGUMENT…]] | status COMPONENT [options] | clear COMPONENT [options]",
  details: [
    "A call locks the list, reads its items, takes up to -j items that no other call is running, unlocks " +
    "the list, and runs the command for each of them. {} and {item} in the arguments, and BATON_ITEM, are " +
    "the item; if the command has none of them, the item is its last argument. In a shell command (-c), {} " +
    "is the item as one word, quoted or not.",
    "With --items the call starts the next item when one has ended, until none is left, and prints a " +
    "summary. Items from standard input start as their lines come; a bad line ends the call (65) after the running " +
    "items. With --query it runs one round of at most -j items, and the next call, for example from cron " +
    "on another machine, runs others. --one-round and --loop choose the other way.",
    "Calls with --items that run together share their list, on all machines. When the last of them has ended, the " +
    "next call runs all items again; with --done-ttl it skips those that succeeded. A query must print only what " +
    "is left.",
    "Exit codes: 0 if all items exited with 0, or there was nothing to do; 123 if an item failed, as with " +
    "xargs; 75 if other calls run all items, or as many as --total allows; 81 if the list stays locked for " +
    "-w. An item that was stopped because its lock was lost, or could not be started, gives the exit code " +
    "of baton lock. Items that run in other calls and items left after --drain do not affect the exit code; " +
    "the summary counts them.",
    "With more than one job, the output of a command is printed in one piece when it has ended, as by GNU parallel " +
    "(--output group). --output lines prints whole lines as they come; raw lets commands write directly, for " +
    "example to a terminal. --tag begins each line with its item and a tab. If -j outputs wait for their reader, no " +
    "new item starts; the end of an item does not wait. When a command and the processes that it started have " +
    "ended, its output ends, even if another process still has it open.",
    "--joblog writes a tab-separated line for each item: sequence number, host, start in Unix time, " +
    "duration in seconds, 0, 0, exit code (128 + N for signal N), signal, command. With --retries it is the " +
    "last attempt.",
    "A list can have its own section in a configuration file, [pool.component.COMPONENT], with jobs, query, " +
    "total, done_ttl, retries and command. Then `baton pool COMPONENT` is enough. Options on the command " +
    "line override it.",
    "The list is the lock COMPONENT, and an item the lock COMPONENT/ITEM, so baton who, ls, break and lock " +
    "work with them; pool.component_path and pool.item_path set other paths. All calls must have the same " +
    "paths and --total: one that differs exits with 78.",
    "status prints running items and, with --done-ttl, results; with --items or --query also free items. " +
    "clear forgets the results, so that the items run again; with --items or --query only of these items.",
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
  forms: poolCommandForms,
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
  // The guard process starts within milliseconds, in parallel with the following work.
  const guard = startGuard(stderrSentencePrinter(call.io));
  const { runPoolCommand } = await import("./run_pool.ts");
  return await runPoolCommand(options, call.io, guard);
}
