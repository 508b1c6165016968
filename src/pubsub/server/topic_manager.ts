/**
 * Carries out an operator's request (MANAGE) about one topic, if this server may serve the topic. Responds with OK only
 * if the lease is still held afterwards.
 */
import { BatonError, type ErrorCode, errorMessage } from "../../base/errors.ts";
import { countWithNoun } from "../../base/support/text.ts";
import type { PubsubMessageOf } from "../wire/pubsub_messages.ts";
import type { StatusCode } from "../wire/status_codes.ts";
import type { TopicPermit } from "../ownership/topic_state.ts";
import type { TopicOwnership } from "../ownership/topic_ownership.ts";
import type { TopicStore } from "../store/topic_store.ts";
import { makeStatusMessage, type ResponseStatusMessage } from "../status_message.ts";
import { makeUnavailableTopicResponse } from "./response_message.ts";
import type { RequestEnvelope } from "./server_request.ts";
import { manageTopicRequestsMax } from "./server_limits.ts";

export interface ManageRequestHandlerOptions {
  readonly server: string;
  readonly ownership: Pick<TopicOwnership, "availability" | "delete">;
  readonly store: Pick<TopicStore, "show" | "forgetClient" | "repair">;
  readonly reply: (envelope: RequestEnvelope, status: ResponseStatusMessage) => void;
}

type ManageMessage = PubsubMessageOf<"MANAGE">;

/** The status for each error that means that nothing was changed. */
const refusals: Partial<Record<ErrorCode, StatusCode>> = {
  USAGE: "BAD_REQUEST",
  BAD_DATA: "DAMAGED",
  NOT_FOUND: "NOT_SUBSCRIBED",
  STALE_TOKEN: "OVERLOADED",
};
const encoder = new TextEncoder();

export class ManageRequestHandler {
  readonly #options: ManageRequestHandlerOptions;
  #size = 0;

  constructor(options: ManageRequestHandlerOptions) {
    this.#options = options;
  }

  handle(envelope: RequestEnvelope, message: ManageMessage): void {
    const { server, reply } = this.#options;
    if (this.#size >= manageTopicRequestsMax) {
      const reason = `${manageTopicRequestsMax} MANAGE requests are in progress, which is the limit`;
      return reply(envelope, makeStatusMessage(server, message, "OVERLOADED", { reason }));
    }
    this.#size++;
    void this.#responseTo(message).catch((thrown) => this.#failureStatus(message, thrown)).then((status) => {
      this.#size--;
      reply(envelope, status);
    });
  }

  async #responseTo(message: ManageMessage): Promise<ResponseStatusMessage> {
    const { topic, headers = {} } = message;
    if (headers.action === "delete") return await this.#delete(message, headers.acceptLoss === true);
    const availability = await this.#options.ownership.availability(topic, headers.epoch ?? null);
    if (availability.kind !== "serving") {
      return makeUnavailableTopicResponse(this.#options.server, message, availability, () => null);
    }
    const { permit } = availability;
    const done = await this.#execute(message, permit);
    if (done === null) {
      const reason = `${JSON.stringify(headers.action ?? "")} is not an action on a topic`;
      return makeStatusMessage(this.#options.server, message, "BAD_REQUEST", { reason });
    }
    if (permit.lease.isConfirmed()) return this.#okStatus(message, done);
    const reason = "it was done, but the server's lease ended before that could be confirmed";
    return makeStatusMessage(this.#options.server, message, "ERROR", { reason, headers: { unknown: true } });
  }

  /** Carries out the action and returns the result; null for an unknown action. */
  async #execute({ topic, headers = {} }: ManageMessage, { epoch }: TopicPermit): Promise<unknown> {
    const { store } = this.#options;
    const acceptsLoss = headers.acceptLoss === true;
    switch (headers.action) {
      case "show":
        return await store.show(topic, epoch);
      case "forget-client":
        await store.forgetClient(topic, epoch, headers.client ?? "", acceptsLoss);
        return {};
      case "repair":
        if (!acceptsLoss) {
          throw new BatonError("USAGE", "repair deletes damaged data: add --accept-loss");
        }
        return await store.repair(topic, epoch);
      default:
        return null;
    }
  }

  async #delete(message: ManageMessage, acceptsLoss: boolean): Promise<ResponseStatusMessage> {
    const { server, ownership, store } = this.#options;
    const { topic, headers = {} } = message;
    const whyNot = async (epoch: number) => {
      const { subscribers, slowest } = await store.show(topic, epoch);
      if (subscribers === 0) return null;
      const [{ client, pending } = { client: "", pending: 0 }] = slowest;
      const waits = pending === 0
        ? ""
        : `; ${JSON.stringify(client)} has ${countWithNoun(pending, "undelivered message")}`;
      const who = countWithNoun(subscribers, "client is", "clients are");
      return `${who} subscribed${waits}: to delete it anyway: --accept-loss`;
    };
    const result = await ownership.delete(topic, headers.epoch ?? null, acceptsLoss ? null : whyNot);
    if (result.kind === "deleted") return this.#okStatus(message, {});
    const name = `topic ${JSON.stringify(topic)}`;
    if (result.kind === "gone") {
      return makeStatusMessage(server, message, "NOT_SUBSCRIBED", { reason: `There is no ${name}` });
    }
    const code = result.kind === "refused" ? "BAD_REQUEST" : "OVERLOADED";
    return makeStatusMessage(server, message, code, { reason: `${name} was not deleted: ${result.why}` });
  }

  #okStatus(message: ManageMessage, value: unknown): ResponseStatusMessage {
    return { ...makeStatusMessage(this.#options.server, message, "OK"), body: encoder.encode(JSON.stringify(value)) };
  }

  #failureStatus(message: ManageMessage, thrown: unknown): ResponseStatusMessage {
    const { server } = this.#options;
    const code = thrown instanceof BatonError ? refusals[thrown.code] : undefined;
    const headers = code === undefined ? { unknown: true as const } : {};
    return makeStatusMessage(server, message, code ?? "ERROR", { reason: errorMessage(thrown), headers });
  }
}
