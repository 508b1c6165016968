/** The commands that look at locks and take them back, as one part of the binary. */
export { breakCommand } from "./break.ts";
export { lsCommand } from "./ls.ts";
export { whoCommand } from "./who.ts";
