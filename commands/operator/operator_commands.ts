/** Commands that show what is there, loaded together. */
export { lsCommand } from "./ls.ts";
export { whoCommand } from "./who.ts";
