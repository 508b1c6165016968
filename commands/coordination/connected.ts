/** Opens a session for the time of one call, for commands that only read or send a request. */
import { connect } from "../../src/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { systemClock } from "../../src/support/clock.ts";
import type { Call } from "../command.ts";
import { type Coordination, coordinationOf, reach } from "../../src/coordination/connect/coordination_servers.ts";
import { closeSession, openPatiently } from "../../src/coordination/connect/command_session.ts";

type ConnectedCall = Pick<Call<typeof connectionSettings>, "values" | "sources" | "io">;

interface ConnectedLimits {
  /** Ends connecting, and the wait for the end of the session. */
  readonly signal?: AbortSignal;
  /** Purpose of the wait. If given, servers that do not respond are waited for until the signal aborts. */
  readonly waitsFor?: string | undefined;
}

/** Connects, works, closes. Prints the scope on stderr if the user named no servers. */
export async function connected<T>(
  { values, sources, io }: ConnectedCall,
  work: (zk: ZooKeeper, place: Coordination) => Promise<T>,
  { signal = new AbortController().signal, waitsFor: what }: ConnectedLimits = {},
): Promise<T> {
  const { quiet } = values;
  const clock = systemClock();
  const place = coordinationOf(values, sources, signal);
  if (place.assumed && !quiet) {
    io.err(
      `baton: scope: ${reach[place.scope]}; use --servers for a cluster, or --servers embedded to hide this message\n`,
    );
  }
  const isPatient = what !== undefined;
  const zk =
    await (isPatient ? openPatiently(connect, place.connect, { io, clock, quiet, what }) : connect(place.connect));
  try {
    return await work(zk, place);
  } finally {
    await closeSession(zk, clock, signal);
  }
}
