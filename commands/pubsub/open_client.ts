/** Opens the connection to the proxies, and the state of a client ID in one topic. */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { pubsubClientSettings, pubsubKeySettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { checkPubsubName } from "../../src/pubsub/client/client_limits.ts";
import { ClientState, clientStateFilePath } from "../../src/pubsub/client/client_state.ts";
import { requestTopicInfo } from "../../src/pubsub/client/pubsub_client_session.ts";
import { PubsubRequester } from "../../src/pubsub/client/requester.ts";
import { topicClientStatesFolder } from "../../src/pubsub/client/state_folder.ts";
import { BatonError } from "../../src/base/errors.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import { userStateFolder } from "../../src/base/support/home_folder.ts";
import { ownUserName } from "../../src/base/support/user_name.ts";
import type { CommandCall } from "../command.ts";
import { proxyLookupOptions } from "./find_proxies.ts";

export const clientConnectionSettings = {
  ...pubsubKeySettings,
  ...pubsubClientSettings,
  ...connectionSettings,
} satisfies SettingTable;

/** Returns the connection settings for a command that has a default client ID. `unset` describes this default. */
export function connectionSettingsWithDefaultId(unset: string) {
  const pubsubClientId = { ...pubsubClientSettings.pubsubClientId, help: "the client ID", unset, basic: true };
  return { ...clientConnectionSettings, pubsubClientId };
}

export type ClientConnectionCall = CommandCall<typeof clientConnectionSettings>;

/** Returns a requester, which connects with its first request. Rejects USAGE or CONFIG for unusable proxies or keys. */
export async function openPubsubRequester(call: ClientConnectionCall): Promise<PubsubRequester> {
  const { values, io } = call;
  const hasKey = (values.pubsubKey ?? values.pubsubServiceKey) !== undefined;
  const security = hasKey ? (await import("./service_security.ts")).readPubsubClientSecurity(values) : undefined;
  return new PubsubRequester({
    ...proxyLookupOptions(call),
    clock: systemClock(),
    timeoutMs: values.pubsubTimeout,
    attemptMs: values.pubsubRetryTimeout,
    ...(values.quiet ? {} : { onStall: (why: string) => io.err(`baton: still trying: ${why}\n`) }),
    ...(security === undefined ? {} : { socket: security }),
    ...(values.pubsubRetries === undefined ? {} : { retriesMax: values.pubsubRetries }),
  });
}

/**
 * Opens the state of a client ID in a topic, which only one process at a time can use. If another process uses it,
 * rejects with LOCK_BUSY: after --timeout, or immediately if `waits` is false.
 */
export async function openClientState(
  call: ClientConnectionCall,
  { id, topic, signal, waits = true }: {
    readonly id: string;
    readonly topic: string;
    readonly signal: AbortSignal;
    readonly waits?: boolean;
  },
): Promise<ClientState> {
  const { values: { quiet, pubsubTimeout }, io } = call;
  const onWait = (why: string) => {
    const sentence = `waiting up to ${formatDuration(pubsubTimeout)} (--timeout) for ${why} in this topic`;
    if (!quiet) io.err(`baton: ${sentence}; with another --id both run at the same time\n`);
  };
  const waitMs = waits ? pubsubTimeout : 0;
  try {
    return await ClientState.open(clientStateFolder(call, topic), id, { waitMs, clock: systemClock(), signal, onWait });
  } catch (thrown) {
    if (!waits || !(thrown instanceof BatonError) || thrown.code !== "LOCK_BUSY") throw thrown;
    throw new BatonError("LOCK_BUSY", `${thrown.message}; --timeout sets this limit`, { cause: thrown });
  }
}

/**
 * Checks that there is a subscription to end, before the state of a new client ID is made. A client with a state is not
 * checked: its earlier call may have ended the subscription without a response. Rejects with NOT_SUBSCRIBED for a
 * client that neither has a state here nor is subscribed, or with the error of the request.
 */
export async function checkUnsubscribe(
  call: ClientConnectionCall,
  requester: PubsubRequester,
  { id, topic, signal }: { readonly id: string; readonly topic: string; readonly signal: AbortSignal },
): Promise<void> {
  if (hasClientState(call, { id, topic })) return;
  const { position = -1 } = await requestTopicInfo(requester, { id, topic }, { signal });
  if (position >= 0) return;
  const clients = `to see its clients: baton pubsub topic show ${shellQuoteIfNeeded(topic)}`;
  throw new BatonError("NOT_SUBSCRIBED", `Client "${id}" is not subscribed to topic "${topic}"; ${clients}`);
}

/** Returns whether an earlier call of this client ID has left its state here. */
export function hasClientState(
  call: ClientConnectionCall,
  { id, topic }: { readonly id: string; readonly topic: string },
): boolean {
  return existsSync(clientStateFilePath(clientStateFolder(call, topic), id));
}

/** Returns the folder for the states of all clients in a topic. Throws CONFIG for a user without a home folder. */
export function clientStateFolder({ values }: ClientConnectionCall, topic: string): string {
  const advice = "name the folder for client states with --state-dir";
  return topicClientStatesFolder(values.pubsubStateDir ?? userStateFolder("pubsub", advice), topic);
}

/**
 * Returns the default client ID of `baton subscribe`. The default IDs of `baton publish` begin with it. The ID does not
 * depend on the environment or the terminal, so that cron and a login shell continue the same subscription.
 */
export function defaultClientId(): string {
  const id = `${ownUserName()}@${hostname()}`;
  checkPubsubName("client id", id);
  return id;
}
