/**
 * The full dose:
 * `scripts/fault lock [--rounds N | --minutes M] [--seed S] [--parallel P] [--backend NAME]
 * [--only ROUND] [-- WRAPPER…]`.
 */
import { fullDose } from "./full_dose.ts";
import { batonWrapper } from "./wrappers.ts";

await fullDose(batonWrapper);
