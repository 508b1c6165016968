/**
 * Locks that baton shares with programs of Curator, kazoo or go-zookeeper: what happens to a holder of baton's while
 * they wait.
 */
import { join } from "node:path";
import { CuratorPrograms, python } from "../../../support/interop_clients.ts";
import { batonCommand } from "../../../support/keeper_server.ts";
import { goContender, hasPeer } from "../../../support/peers.ts";
import type { Wrapper } from "../lock/contender.ts";
import { serverFaults } from "../lock/faults.ts";

const baton = (recipe: string, path: string, child: readonly string[]): string[] => [
  ...batonCommand(),
  "lock",
  "--recipe",
  recipe,
  path,
  "--",
  ...child,
];

/** All contenders are baton's, by another's recipe. */
const alone: Wrapper = {
  name: "baton lock --recipe curator",
  command: (lock, child) => baton("curator", `/fault/${lock}`, child),
};

/** The victim is baton's, who waits is not. */
function beside(recipe: string, waiter: (path: string, child: readonly string[]) => string[]): Wrapper {
  return {
    name: `baton lock --recipe ${recipe}, with others waiting`,
    command: (lock, child) => {
      const isVictim = child.some((word) => word.endsWith("/victim"));
      return isVictim ? baton(recipe, `/fault/${lock}`, child) : waiter(`/fault/${lock}`, child);
    },
  };
}

const kazooProgram = join(import.meta.dirname, "../../../fixtures/interop/kazoo_lock_run.py");
const besideKazoo = beside("kazoo", (path, child) => [python, kazooProgram, path, ...child]);

const besideGo = beside("curator", (path, child) => [goContender, "run", path, ...child]);

/** What happens to the servers happens to the others too, who promise nothing: then all contenders are baton's. */
export async function interopWrapper(): Promise<{ readonly wrapper: Wrapper; readonly close: () => void }> {
  const programs = hasPeer("curator") ? await CuratorPrograms.compile("CuratorLockRun") : null;
  const besideCurator = programs === null
    ? alone
    : beside("curator", (path, child) => programs.command("CuratorLockRun", path, ...child));
  const currentPrograms = hasPeer("curator59") ? await CuratorPrograms.compileCurrent("CuratorLockRun") : null;
  const besideCurrent = currentPrograms === null
    ? alone
    : beside("curator", (path, child) => currentPrograms.command("CuratorLockRun", path, ...child));
  const others = [
    besideCurator,
    hasPeer("kazoo") ? besideKazoo : alone,
    besideCurrent,
    hasPeer("goZookeeper") ? besideGo : alone,
  ];
  const wrapper: Wrapper = {
    name: "baton lock --recipe",
    command: alone.command,
    forRound: ({ number, fault }) => serverFaults.includes(fault) ? alone : others[number % others.length] ?? alone,
  };
  const close = () => {
    programs?.close();
    currentPrograms?.close();
  };
  return { wrapper, close };
}
