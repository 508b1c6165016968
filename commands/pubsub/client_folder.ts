/** Where clients' states are when nobody says: the same from cron and from a login shell, by the user database. */
import { join } from "node:path";
import { homeInDatabase } from "../../src/keeper/lifecycle/keeper_location.ts";
import { userId } from "../../src/keeper/lifecycle/safe_folder.ts";
import { BatonError } from "../../src/errors.ts";

/** Throws CONFIG for a user without a home. */
export function clientFolder(): string {
  const home = homeInDatabase(userId(), "/etc/passwd");
  if (home?.startsWith("/") && home !== "/") return join(home, ".local/state/baton/pubsub");
  throw new BatonError(
    "CONFIG",
    "This user has no home in the user database; --state-dir says where clients' states go",
  );
}
