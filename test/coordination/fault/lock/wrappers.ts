/** The programs that are put to the test. */
import { join } from "node:path";
import process from "node:process";
import { batonCommand } from "../../../support/keeper_server.ts";
import type { Wrapper } from "./contender.ts";

/** T in all lock faults, in milliseconds. */
export const sessionTimeoutMs = 4000;

export const batonWrapper: Wrapper = {
  name: "baton lock",
  command: (lock, child) => [...batonCommand(), "lock", lock, "--", ...child],
};

/** A leader that lost campaigns again, and its child is another critical section. */
export const electWrapper: Wrapper = {
  name: "baton elect",
  comesBack: true,
  command: (name, child) => [...batonCommand(), "elect", name, "--value", "127.0.0.1:1", "--", ...child],
};

/** Takes the lock and never looks at it again: the harness must catch it. */
export const unwatchedWrapper: Wrapper = {
  name: "a wrapper that never watches its session",
  command: (lock, child) => {
    const program = join(import.meta.dir, "../../../fixtures/unwatched_lock.ts");
    return [process.execPath, program, lock, "--", ...child];
  },
};
