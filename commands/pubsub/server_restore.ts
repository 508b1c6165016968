/** `baton pubsub server restore`: goes on from an older copy of a server's data, because there is no newer one. */
import { resolve } from "node:path";
import { BatonError } from "../../src/errors.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { type RestoreResult, restoreServer } from "../../src/pubsub/ownership/restore_server.ts";
import { claimDataDir } from "../../src/pubsub/server/server_identity.ts";
import { TopicStore } from "../../src/pubsub/store/topic_store.ts";
import { verifyStore } from "../../src/pubsub/store/verify_topic_store.ts";
import { connected } from "../coordination/connected.ts";
import { printable } from "../../src/support/text.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { PubsubRestoredJson } from "../json_shapes/pubsub_server_shapes.ts";
import type { ServerCall } from "./server.ts";

export async function restore(call: ServerCall): Promise<ExitCode> {
  const { values, io } = call;
  const { pubsubServerId: id, pubsubDataDir } = values;
  if (id === undefined || pubsubDataDir === undefined) {
    throw new BatonError(
      "USAGE",
      "baton pubsub server restore needs --id and --data-dir: whose data is it, and where?",
    );
  }
  if (!values.acceptLoss) {
    throw new BatonError(
      "USAGE",
      `baton pubsub server restore gives up all that "${id}" has stored since the copy in ${pubsubDataDir} was made: say ` +
        "--accept-loss when there is no newer one",
    );
  }
  const done = await restoreFrom(call, id, resolve(pubsubDataDir));
  const { restored, lost, returned, left } = done;
  const result: PubsubRestoredJson = {
    version: 1,
    server: id,
    restored: [...restored],
    lost: [...lost],
    returned: [...returned],
    left: [...left],
  };
  if (values.json) io.out(`${JSON.stringify(result)}\n`);
  else {
    for (const [what, topics] of Object.entries(done)) {
      for (const topic of topics) io.out(`${what} ${printable(topic)}\n`);
    }
    if (!values.quiet) {
      io.err(
        `baton: topics as they were when the copy was made: ${restored.length}; that begin again, empty: ${lost.length}; ` +
          `that are back where they came from: ${returned.length}; that stay unavailable: ${left.length}\n`,
      );
    }
  }
  return exitCodes.SUCCESS;
}

/** The store is open meanwhile, so that no server starts on it. */
async function restoreFrom(call: ServerCall, id: string, dataDir: string): Promise<RestoreResult> {
  const { problems } = verifyStore(dataDir); // nothing is made where there is no store
  // What is damaged is refused by the server as well, and is no reason to do without the rest.
  for (const problem of problems) call.io.err(`baton: damaged in ${dataDir}: ${problem}\n`);
  let broken: BatonError | null = null;
  const hooks = { responded: () => {}, broken: (error: BatonError) => void (broken = error) };
  await using store = await TopicStore.open(dataDir, hooks, { acceptDamagedLog: true });
  claimDataDir(dataDir, id, { wasMoved: true });
  const done = await connected(call, (zk) => restoreServer(zk, new PubsubPath(call.values.root), { id, store }));
  if (broken !== null) throw broken;
  return done;
}
