/** The gate's dose of election faults, on the binary under test; `scripts/fault elect` runs the full one. */
import { describeShortDose } from "./lock/short_dose.ts";
import { electWrapper } from "./lock/wrappers.ts";

describeShortDose("an election", electWrapper, 12);
