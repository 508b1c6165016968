/** The full dose: `scripts/fault foreign [--rounds N] [--seed S] [--parallel P] [--backend NAME] [--only ROUND] [-- curator|kazoo]`. */
import process from "node:process";
import { CuratorPrograms } from "../../support/foreign_clients.ts";
import { fullDose } from "../lock/full_dose.ts";
import { besideCurator, besideKazoo, recipeWrapper } from "./wrappers.ts";

const beside = process.argv.at(-1);
if (beside === "curator" || beside === "kazoo") process.argv.splice(process.argv.indexOf("--"));
if (beside === "kazoo") await fullDose(besideKazoo);
if (beside === "curator") {
  const programs = await CuratorPrograms.compile("CuratorLockRun");
  process.once("exit", () => programs.close());
  await fullDose(besideCurator(programs));
}
await fullDose(recipeWrapper);
