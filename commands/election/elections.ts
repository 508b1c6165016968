/** The commands about elections, as one part of the binary. */
export { electCommand } from "./elect.ts";
export { forwardCommand } from "./forward.ts";
export { leaderCommand } from "./leader.ts";
export { resignCommand } from "./resign.ts";
