/** The commands for elections, which are loaded together. */
export { electCommand } from "./elect.ts";
export { forwardCommand } from "./forward.ts";
export { leaderCommand } from "./leader.ts";
export { resignCommand } from "./resign.ts";
