/**
 * Decides what a proxy does with a request in flight after an event. Pure; request_forwarder.ts carries out the
 * decision.
 */
import { nothingDoneStatusCodes, type StatusCode } from "../wire/status_codes.ts";
import type { RequestTraits } from "./request_traits.ts";

export interface RequestForwardingState {
  readonly traits: Pick<RequestTraits, "name" | "changesState" | "isRepeatable">;
  /** True if the request is at a server that has not responded yet. */
  readonly isSent: boolean;
  /** True if a server that lost its connection may have executed the request. */
  readonly mayBeDone: boolean;
  readonly tries: number;
  readonly connectionLosses: number;
}

export type RequestForwardingEvent =
  | { readonly kind: "response"; readonly status: StatusCode }
  /** The response is not a STATUS message. */
  | { readonly kind: "invalid response" }
  /** The connection that the request was sent on was lost. */
  | { readonly kind: "server lost" }
  /** The topic does not exist, and this request does not create one. */
  | { readonly kind: "no topic" }
  /** The deadline of the request has passed, or the proxy is stopping. */
  | { readonly kind: "deadline" }
  | { readonly kind: "client gone" };

/**
 * The status codes of responses that a proxy creates itself. ERROR means that the outcome is unknown; all others mean
 * that the request was certainly not executed.
 */
export type ProxyOwnResponseStatus = "OVERLOADED" | "NOT_SUBSCRIBED" | "NOT_OWNER" | "ERROR";

export type RequestForwardingDecision =
  | { readonly do: "forward response" }
  | { readonly do: "respond"; readonly status: ProxyOwnResponseStatus }
  | { readonly do: "retry"; readonly when: "now" | "later" }
  | { readonly do: "forget" };

/**
 * The number of lost connections after which a request is not sent again, because the request is probably the cause.
 */
export const requestConnectionLossesMax = 5;

export function decideRequestForwarding(
  state: RequestForwardingState,
  event: RequestForwardingEvent,
): RequestForwardingDecision {
  const { traits, isSent, mayBeDone } = state;
  switch (event.kind) {
    case "response":
      return decideOnResponse(state, event.status);
    case "invalid response":
      return { do: "respond", status: "ERROR" };
    case "server lost":
      // Another try is safe: a get without a response has changed nothing, and a server recognizes a repeated request
      // and executes it only once.
      if (traits.isRepeatable && state.connectionLosses < requestConnectionLossesMax) {
        return { do: "retry", when: "now" };
      }
      return { do: "respond", status: traits.changesState ? "ERROR" : "OVERLOADED" };
    case "no topic":
      if (mayBeDone && traits.changesState) return { do: "respond", status: "ERROR" };
      return { do: "respond", status: traits.name === "MERGE" ? "NOT_OWNER" : "NOT_SUBSCRIBED" };
    case "deadline":
      return { do: "respond", status: mayBeDone || (isSent && traits.changesState) ? "ERROR" : "OVERLOADED" };
    case "client gone":
      return { do: "forget" };
  }
}

function decideOnResponse(
  { traits, mayBeDone, tries }: RequestForwardingState,
  status: StatusCode,
): RequestForwardingDecision {
  // These reasons are temporary: another server owns the topic, the topic is moving, or an earlier request has to be
  // executed first.
  if (status === "NOT_OWNER") return { do: "retry", when: tries <= 1 ? "now" : "later" };
  if (status === "OVERLOADED") return { do: "retry", when: "later" };
  if (mayBeDone && traits.changesState && nothingDoneStatusCodes.includes(status)) {
    return { do: "respond", status: "ERROR" };
  }
  return { do: "forward response" };
}

/** Returns true if, after this event, a server may have executed the request. */
export function mayRequestBeDone(
  { traits, mayBeDone }: RequestForwardingState,
  event: RequestForwardingEvent,
): boolean {
  return mayBeDone || (event.kind === "server lost" && traits.changesState);
}
