/**
 * The full dose:
 * `scripts/fault interop [--rounds N | --minutes M] [--seed S] [--parallel P] [--backend NAME] [--only ROUND]`.
 */
import process from "node:process";
import { fullDose } from "../lock/full_dose.ts";
import { interopWrapper } from "./wrappers.ts";

const { wrapper, close } = await interopWrapper();
process.once("exit", close);
await fullDose(wrapper);
