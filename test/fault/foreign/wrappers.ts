/** Locks that baton shares with Curator's or kazoo's programs: what happens to a holder of baton's while they wait. */
import { join } from "node:path";
import { type CuratorPrograms, python } from "../../support/foreign_clients.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import type { Wrapper } from "../lock/contender.ts";
import { networkFaults, processFaults } from "../lock/faults.ts";

/** All contenders are baton's, by another's recipe. */
export const recipeWrapper: Wrapper = {
  name: "baton lock --recipe curator",
  command: (lock, child) => [...batonCommand(), "lock", "--recipe", "curator", `/fault/${lock}`, "--", ...child],
};

/** What happens to the servers happens to the others too, who promise nothing: only the victim's own troubles. */
const victimFaults = [...networkFaults, ...processFaults];

/** The victim is baton's, who waits is not. */
function beside(recipe: string, waiter: (path: string, child: readonly string[]) => string[]): Wrapper {
  return {
    name: `baton lock --recipe ${recipe}, with others waiting`,
    faults: victimFaults,
    command: (lock, child) => {
      const path = `/fault/${lock}`;
      const isVictim = child.some((word) => word.endsWith("/victim"));
      if (!isVictim) return waiter(path, child);
      return [...batonCommand(), "lock", "--recipe", recipe, path, "--", ...child];
    },
  };
}

const kazooProgram = join(import.meta.dirname, "../../fixtures/foreign/kazoo_lock_run.py");

export const besideKazoo: Wrapper = beside("kazoo", (path, child) => [python, kazooProgram, path, ...child]);

/** The program is compiled from test/fixtures/foreign/CuratorLockRun.java. */
export function besideCurator(programs: CuratorPrograms): Wrapper {
  return beside("curator", (path, child) => programs.command("CuratorLockRun", path, ...child));
}
