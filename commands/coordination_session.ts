/**
 * Chooses the coordination servers of a command, and opens a session with them. Tells the user which processes share
 * the locks, which is called the scope.
 */
import type { Io } from "../src/base/terminal/io.ts";
import type { ConfigSources } from "../src/base/config/resolve_settings.ts";
import type { SettingValues } from "../src/base/config/setting.ts";
import { connectToZooKeeper } from "../src/protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../src/protocols/zookeeper/zookeeper.ts";
import type { connectionSettings, LockScope } from "../src/coordination/settings/coordination_settings.ts";
import { systemClock } from "../src/base/support/clock.ts";
import type { CommandCall } from "./command.ts";
import {
  type CoordinationServers,
  lockScopeTexts,
  readCoordinationServers,
  requireLockScope,
} from "../src/coordination/connect/coordination_servers.ts";
import { closeCoordinationSession, openCoordinationSession } from "../src/coordination/connect/command_session.ts";

interface AnnouncedPlaceOptions {
  readonly values: SettingValues<typeof connectionSettings>;
  readonly sources: ConfigSources;
  readonly quiet: boolean;
  readonly verbose: boolean;
}

/**
 * Chooses the servers of a command. If the user has named no servers, prints the scope on a terminal or with --verbose;
 * at other times nothing is printed, because cron would mail the line after each run. `what` is the subject of the
 * message, such as `lock "nightly"`. Throws USAGE or CONFIG for invalid settings, or SCOPE_MISMATCH if the servers
 * reach fewer processes than `scope`.
 */
export function chooseCoordinationServers(
  { values, sources, quiet, verbose }: AnnouncedPlaceOptions,
  io: Io,
  { what, scope, signal }: {
    readonly what?: string;
    readonly scope?: LockScope | undefined;
    readonly signal?: AbortSignal;
  },
): CoordinationServers {
  const place = readCoordinationServers(values, sources, { signal, warn: (text) => io.err(`baton: ${text}\n`) });
  requireLockScope(scope, place);
  if (place.assumed && !quiet && (verbose || io.stderrIsTerminal)) {
    const whose = `scope${what === undefined ? "" : ` of ${what}`}: ${lockScopeTexts[place.scope]}`;
    io.err(`baton: ${whose}; use --servers for a cluster, or --servers embedded to hide this message\n`);
  }
  return place;
}

export type CoordinationCommandCall = Pick<CommandCall<typeof connectionSettings>, "values" | "sources" | "io">;

interface ConnectedLimits {
  /** Ends the attempt to connect, and also the wait for the end of the session. */
  readonly signal?: AbortSignal;
  /**
   * Says what the call waits for, as a part of messages. If set, the call waits until the servers respond or the signal
   * aborts.
   */
  readonly waitsFor?: string | undefined;
}

export async function runInCoordinationSession<T>(
  { values, sources, io }: CoordinationCommandCall,
  work: (zk: ZooKeeper, place: CoordinationServers) => Promise<T>,
  { signal = new AbortController().signal, waitsFor }: ConnectedLimits = {},
): Promise<T> {
  const { quiet, verbose } = values;
  const clock = systemClock();
  const place = chooseCoordinationServers({ values, sources, quiet, verbose }, io, { signal });
  const opening = { isPatient: waitsFor !== undefined, io, clock, quiet, what: waitsFor ?? "" };
  const zk = await openCoordinationSession(connectToZooKeeper, place.connect, opening);
  try {
    return await work(zk, place);
  } finally {
    await closeCoordinationSession(zk, clock, signal);
  }
}
