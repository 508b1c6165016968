/** Says whether `sh scripts/test` knows its words, before anything is built. Exits with 64 if it does not. */
import { join } from "node:path";
import process from "node:process";
import { readTestCall } from "./test_call.ts";

readTestCall(join(import.meta.dir, "../.."), process.argv.slice(2));
