/** Chooses the ZooKeeper servers for a command that holds something, and prints the scope if the user named none. */
import type { Io } from "../../src/terminal/io.ts";
import type { ConfigSources } from "../../src/config/resolve_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import type { connectionSettings, Scope } from "../../src/config/settings.ts";
import {
  type Coordination,
  coordinationOf,
  reach,
  requireScope,
} from "../../src/coordination/connect/coordination_servers.ts";

export interface AnnouncedPlaceOptions {
  readonly values: SettingValues<typeof connectionSettings> & { readonly scope?: Scope | undefined };
  readonly sources: ConfigSources;
  readonly quiet: boolean;
}

/** `what` is the subject of the message: `lock "nightly"`. Throws USAGE, CONFIG, and SCOPE_MISMATCH for less than --scope. */
export function announcedPlace(
  { values, sources, quiet }: AnnouncedPlaceOptions,
  io: Io,
  { what, signal }: { readonly what: string; readonly signal?: AbortSignal },
): Coordination {
  const place = coordinationOf(values, sources, signal);
  requireScope(values.scope, place);
  if (place.assumed && !quiet) {
    io.err(
      `baton: scope of ${what}: ${
        reach[place.scope]
      }; use --servers for a cluster, or --servers embedded to hide this message\n`,
    );
  }
  return place;
}
