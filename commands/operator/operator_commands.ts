/** `baton ls` and `baton who`, which share code and are loaded together. */
export { lsCommand } from "./ls.ts";
export { whoCommand } from "./who.ts";
