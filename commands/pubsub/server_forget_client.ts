/** `baton pubsub server forget-client TOPIC CLIENT`: makes room at a topic, or lets a client begin anew there. */
import { printable } from "../../src/support/text.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { PubsubClientForgottenJson } from "../json_shapes/pubsub_topic_shapes.ts";
import { manage } from "./run_topic.ts";
import type { ServerCall } from "./server.ts";

export async function forgetClient(call: ServerCall, [topic = "", client = ""]: readonly string[]): Promise<ExitCode> {
  const { values, io } = call;
  const { owner } = await manage(call, { topic, action: "forget-client", client, acceptsLoss: values.acceptLoss });
  const result: PubsubClientForgottenJson = { version: 1, topic, server: owner, client };
  if (values.json) io.out(`${JSON.stringify(result)}\n`);
  else if (!values.quiet) io.err(`baton: topic "${printable(topic)}" has forgotten client "${printable(client)}"\n`);
  return exitCodes.SUCCESS;
}
