/** Chooses the servers of a command, prints the scope, and opens a session to read or to send a request. */
import type { Io } from "../src/base/terminal/io.ts";
import type { ConfigSources } from "../src/base/config/resolve_settings.ts";
import type { SettingValues } from "../src/base/config/setting.ts";
import { connect } from "../src/protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../src/protocols/zookeeper/zookeeper.ts";
import type { connectionSettings, Scope } from "../src/coordination/settings/coordination_settings.ts";
import { systemClock } from "../src/base/support/clock.ts";
import type { CommandCall } from "./command.ts";
import {
  type Coordination,
  readCoordinationServers,
  requireScope,
  scopeText,
} from "../src/coordination/connect/coordination_servers.ts";
import { closeSession, openSession } from "../src/coordination/connect/command_session.ts";

interface AnnouncedPlaceOptions {
  readonly values: SettingValues<typeof connectionSettings>;
  readonly sources: ConfigSources;
  readonly quiet: boolean;
  readonly verbose: boolean;
}

/**
 * Chooses the servers. Prints the scope if the user named no servers, and a user sees the message: on a terminal or
 * with --verbose. cron would mail it after each run. `what` is the subject of the message: `lock "nightly"`. Throws
 * USAGE, CONFIG, and SCOPE_MISMATCH for less than `scope`.
 */
export function chooseCoordinationServers(
  { values, sources, quiet, verbose }: AnnouncedPlaceOptions,
  io: Io,
  { what, scope, signal }: {
    readonly what?: string;
    readonly scope?: Scope | undefined;
    readonly signal?: AbortSignal;
  },
): Coordination {
  const place = readCoordinationServers(values, sources, { signal, warn: (text) => io.err(`baton: ${text}\n`) });
  requireScope(scope, place);
  if (place.assumed && !quiet && (verbose || io.stderrIsTerminal)) {
    const whose = `scope${what === undefined ? "" : ` of ${what}`}: ${scopeText[place.scope]}`;
    io.err(`baton: ${whose}; use --servers for a cluster, or --servers embedded to hide this message\n`);
  }
  return place;
}

export type CoordinationCommandCall = Pick<CommandCall<typeof connectionSettings>, "values" | "sources" | "io">;

interface ConnectedLimits {
  /** Ends connecting, and the wait for the end of the session. */
  readonly signal?: AbortSignal;
  /** True: print the scope wherever stderr goes, because it is a part of the result. */
  readonly showsScope?: boolean;
  /** Purpose of the wait. If given, servers that do not respond are waited for until the signal aborts. */
  readonly waitsFor?: string | undefined;
}

/** Connects, works, closes. */
export async function runInCoordinationSession<T>(
  { values, sources, io }: CoordinationCommandCall,
  work: (zk: ZooKeeper, place: Coordination) => Promise<T>,
  { signal = new AbortController().signal, showsScope = false, waitsFor }: ConnectedLimits = {},
): Promise<T> {
  const { quiet, verbose } = values;
  const clock = systemClock();
  const place = chooseCoordinationServers({ values, sources, quiet, verbose: verbose || showsScope }, io, { signal });
  const opening = { isPatient: waitsFor !== undefined, io, clock, quiet, what: waitsFor ?? "" };
  const zk = await openSession(connect, place.connect, opening);
  try {
    return await work(zk, place);
  } finally {
    await closeSession(zk, clock, signal);
  }
}
