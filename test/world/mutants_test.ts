/** Known defects can be put back: the function that each names is there, and has the text. Runs none of them. */
import { expect, test } from "bun:test";
import { mutants } from "./mutant_table.ts";
import { checkChanges } from "./mutants.ts";

test.each(mutants)("$name", (mutant) => {
  expect(() => checkChanges(mutant)).not.toThrow();
});
