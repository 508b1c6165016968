/**
 * The gate's dose of faults around scripts that hold a lock, on the binary under test; `scripts/fault hold` runs the
 * full one.
 */
import { keeper } from "../../support/backends.ts";
import { holdFaults } from "./hold/hold_faults.ts";
import { holdWrapper } from "./hold/hold_wrapper.ts";
import { describeShortDose } from "./lock/short_dose.ts";

// What a network and servers do to a holder is what they do to baton lock, which has its own dose.
describeShortDose("a script with baton hold", { ...holdWrapper, faults: holdFaults }, holdFaults.length, [keeper]);
