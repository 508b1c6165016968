/** Exports `baton ls` and `baton who` together, because both load the same code. */
export { lsCommandFor } from "./ls.ts";
export { whoCommandFor } from "./who.ts";
