/**
 * The full dose:
 * `scripts/fault hold [--rounds N | --minutes M] [--seed S] [--parallel P] [--backend NAME] [--only ROUND]`.
 */
import { fullDose } from "../lock/full_dose.ts";
import { holdWrapper } from "./hold_wrapper.ts";

await fullDose(holdWrapper);
