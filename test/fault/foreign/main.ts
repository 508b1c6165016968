/** The full dose: `scripts/fault foreign [--rounds N | --minutes M] [--seed S] [--parallel P] [--backend NAME] [--only ROUND]`. */
import process from "node:process";
import { fullDose } from "../lock/full_dose.ts";
import { foreignWrapper } from "./wrappers.ts";

const { wrapper, close } = await foreignWrapper();
process.once("exit", close);
await fullDose(wrapper);
