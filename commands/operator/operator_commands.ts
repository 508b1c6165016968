/** Commands that show locks and break them, loaded together. */
export { breakCommand } from "../coordination/looking/break.ts";
export { lsCommand } from "./ls.ts";
export { whoCommand } from "./who.ts";
