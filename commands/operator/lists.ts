/** `baton ls` and `baton who`, which share code and are loaded together. */
export { lsCommandFor } from "./ls.ts";
export { whoCommandFor } from "./who.ts";
