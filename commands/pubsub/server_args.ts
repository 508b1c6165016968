/** Which flags are for which word of an operator, and which for the server itself. Pure. */
import { BatonError } from "../../src/errors.ts";
import { type FlagUse, misplacedFlag } from "./misplaced_flag.ts";

/** By the setting's name. "": the server itself. Settings that stand in a file or the environment do no harm. */
const flagOperations: Readonly<Record<string, FlagUse>> = {
  to: { flag: "--to", of: ["move"] },
  topics: { flag: "--topics", of: ["ls"] },
  dryRun: { flag: "--dry-run", of: ["move", "drain", "rebalance"] },
  undo: { flag: "--undo", of: ["drain"] },
  acceptLoss: { flag: "--accept-loss", of: ["forget", "forget-client", "restore"] },
  json: { flag: "--json", of: ["ls", "move", "drain", "rebalance", "forget", "forget-client", "verify", "restore"] },
  moved: { flag: "--moved", of: [""] },
  handOff: { flag: "--hand-off", of: [""] },
};

/** `given`: settings that were given as flags. Throws USAGE for one that would do nothing. */
export function checkServerFlags(operation: string, given: ReadonlyMap<string, unknown>): void {
  const use = misplacedFlag(flagOperations, operation, given);
  if (use === null) return;
  const [what, wanted] = [operation, use.of.join(", ")].map((word) => word || "a server that is started");
  throw new BatonError("USAGE", `baton pubsub server: ${use.flag} is not for ${what}, but for ${wanted}`);
}
