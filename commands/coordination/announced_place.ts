/** Where a command that holds something coordinates. Whoever did not say where is told how far that reaches. */
import type { Io } from "../../src/terminal/io.ts";
import type { ConfigSources } from "../../src/config/resolve_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import type { connectionSettings, Scope } from "../../src/config/settings.ts";
import {
  type Coordination,
  coordinationOf,
  demandScope,
  reach,
} from "../../src/coordination/connect/coordination_servers.ts";

export interface AnnouncedPlaceOptions {
  readonly values: SettingValues<typeof connectionSettings> & { readonly scope?: Scope | undefined };
  readonly sources: ConfigSources;
  readonly quiet: boolean;
}

/**
 * `what` is the beginning of the sentence whose end is how far it reaches: `"nightly" excludes`. Throws USAGE, CONFIG, and
 * SCOPE_MISMATCH when it reaches less far than --scope demands.
 */
export function announcedPlace(
  { values, sources, quiet }: AnnouncedPlaceOptions,
  io: Io,
  { what, signal }: { readonly what: string; readonly signal?: AbortSignal },
): Coordination {
  const place = coordinationOf(values, sources, signal);
  demandScope(values.scope, place);
  if (place.assumed && !quiet) {
    io.err(
      `baton: ${what} ${
        reach[place.scope]
      }; --servers names an ensemble for more, --servers embedded says this is meant\n`,
    );
  }
  return place;
}
