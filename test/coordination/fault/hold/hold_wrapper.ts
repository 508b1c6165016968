/** A script that holds the lock over its steps, put to the test in the place of `baton lock`. */
import { join } from "node:path";
import { batonCommand } from "../../../support/keeper_server.ts";
import type { Wrapper } from "../lock/contender.ts";
import { networkFaults, serverFaults } from "../lock/faults.ts";
import { holdFaults } from "./hold_faults.ts";

const script = join(import.meta.dir, "../../../fixtures/hold_section.sh");

export const holdWrapper: Wrapper = {
  name: "a script with baton hold",
  isScript: true,
  faults: [...networkFaults, ...serverFaults, ...holdFaults],
  command: (lock, child) => ["env", `BATON=${batonCommand().join(" ")}`, "sh", script, lock, ...child],
};
