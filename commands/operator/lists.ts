/** Exports `baton ls` and `baton who` together, because they share code. */
export { lsCommandFor } from "./ls.ts";
export { whoCommandFor } from "./who.ts";
