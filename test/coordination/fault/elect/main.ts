/**
 * The full dose:
 * `scripts/fault elect [--rounds N | --minutes M] [--seed S] [--parallel P] [--backend NAME]
 * [--only ROUND] [-- WRAPPER…]`.
 */
import { fullDose } from "../lock/full_dose.ts";
import { electWrapper } from "../lock/wrappers.ts";

await fullDose(electWrapper);
