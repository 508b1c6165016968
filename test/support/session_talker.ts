/** Talks to the publish/subscribe servers of a shell session. */
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../src/protocols/zookeeper/hosts.ts";
import { findKeeperLocation } from "../../src/coordination/keeper/lifecycle/keeper_location.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import type { BatonSession, Running } from "./baton_session.ts";
import { eventually } from "./eventually.ts";
import { PubsubTalker } from "./pubsub_talker.ts";

export interface SessionTalker extends AsyncDisposable {
  readonly say: PubsubTalker;
}

/** A session at the keeper of the shell session, which has to run. */
export function sessionZooKeeper({ env }: BatonSession): Promise<ZooKeeper> {
  return connectToZooKeeper({ servers: parseZooKeeperServers(`unix:${findKeeperLocation(env).socketPath}`) });
}

/** The session's keeper has to run. */
export async function sessionTalker(session: BatonSession): Promise<SessionTalker> {
  const zk = await sessionZooKeeper(session);
  const say = await PubsubTalker.start(zk, new PubsubPath());
  return {
    say,
    async [Symbol.asyncDispose]() {
      await say[Symbol.asyncDispose]();
      await zk.close();
    },
  };
}

/** Starts `baton pubsub server` or `proxy` in the shell session, and waits until it serves. */
export async function startRole(
  session: BatonSession,
  words: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Running> {
  const running = session.start(`exec "$baton" pubsub ${words}`, env);
  const serves = () => / serves | takes requests at /.test(running.stderr());
  await eventually(serves, { what: `baton pubsub ${words} to serve`, withinMs: 30_000 });
  return running;
}
