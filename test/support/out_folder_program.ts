/**
 * Delivers messages behind the client's place into a folder, and kills itself before a step. argv: state folder,
 * folder, step or "-".
 */
import process from "node:process";
import { ClientState } from "../../src/pubsub/client/client_state.ts";
import { MessageFolder, recoverMessageFolder } from "../../src/pubsub/client/message_folder.ts";
import { systemClock } from "../../src/base/support/clock.ts";

const [stateFolder = "", path = "", killAt = "-"] = process.argv.slice(2);
const onStep = (step: string) => {
  if (step === killAt) process.kill(process.pid, "SIGKILL");
};
using state = await ClientState.open(stateFolder, "alice", { waitMs: 5000, clock: systemClock() });
const options = { state, topic: "news", onStep };
recoverMessageFolder(options);
const { cursor } = state.subscriberPosition("news");
const messages = [1, 2, 3].filter((id) => id > cursor).map((id) => ({
  id,
  body: new TextEncoder().encode(`body ${id}`),
}));
new MessageFolder(path, options).deliver(messages);
