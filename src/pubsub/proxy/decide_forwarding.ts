/** What becomes of a request under way when something happens to it. Pure; what it is told to do is done by proxy.ts. */
import { claimsNothingDone, type StatusCode } from "../../wire/pubsub/status_codes.ts";
import type { RequestTraits } from "./request_traits.ts";

export interface ForwardingState {
  readonly traits: Pick<RequestTraits, "name" | "changes" | "isRepeatable">;
  /** A server has it, and has not answered. */
  readonly isSent: boolean;
  /** One that had it before was lost: it may have been done there. */
  readonly mayBeDone: boolean;
  /** Times that it was sent. */
  readonly tries: number;
  /** How many of them ended with the connection. */
  readonly losses: number;
}

export type ForwardingEvent =
  | { readonly kind: "response"; readonly status: StatusCode }
  /** What came back is no STATUS. */
  | { readonly kind: "invalid response" }
  /** The connection that it was sent by. */
  | { readonly kind: "server lost" }
  /** There is no such topic, and it makes none. */
  | { readonly kind: "no topic" }
  /** The time is over, its own or the proxy's. */
  | { readonly kind: "deadline" }
  | { readonly kind: "client gone" };

/** What a proxy says by itself: ERROR is that nobody knows, all else that it was definitely not done. */
export type ProxyStatus = "OVERLOADED" | "NOT_SUBSCRIBED" | "NOT_OWNER" | "ERROR";

export type ForwardingDecision =
  /** The server's answer, as it is. */
  | { readonly do: "forward response" }
  | { readonly do: "respond"; readonly status: ProxyStatus }
  | { readonly do: "retry"; readonly when: "now" | "later" }
  | { readonly do: "forget" };

/** A request that costs one connection after the other is likely the cause: it is not sent for ever. */
export const lossesMax = 5;

export function decideForwarding(state: ForwardingState, event: ForwardingEvent): ForwardingDecision {
  const { traits, isSent, mayBeDone } = state;
  switch (event.kind) {
    case "response":
      return decideOnResponse(state, event.status);
    case "invalid response":
      return { do: "respond", status: "ERROR" };
    case "server lost":
      // A get without an answer has done nothing that matters, and what the server recognizes is done once however often it comes.
      if (traits.isRepeatable && state.losses < lossesMax) return { do: "retry", when: "now" };
      return { do: "respond", status: traits.changes ? "ERROR" : "OVERLOADED" };
    case "no topic":
      if (mayBeDone && traits.changes) return { do: "respond", status: "ERROR" };
      return { do: "respond", status: traits.name === "MERGE" ? "NOT_OWNER" : "NOT_SUBSCRIBED" };
    case "deadline":
      return { do: "respond", status: mayBeDone || (isSent && traits.changes) ? "ERROR" : "OVERLOADED" };
    case "client gone":
      return { do: "forget" };
  }
}

function decideOnResponse({ traits, mayBeDone, tries }: ForwardingState, status: StatusCode): ForwardingDecision {
  // The topic is elsewhere, or on its way, or a request that has to come before is: a matter of a moment.
  if (status === "NOT_OWNER") return { do: "retry", when: tries <= 1 ? "now" : "later" };
  if (status === "OVERLOADED") return { do: "retry", when: "later" };
  if (mayBeDone && traits.changes && claimsNothingDone.includes(status)) return { do: "respond", status: "ERROR" };
  return { do: "forward response" };
}

/** Whether it may have been done, now that this has happened to a request that was sent. */
export function mayBeDoneAfter({ traits, mayBeDone }: ForwardingState, event: ForwardingEvent): boolean {
  return mayBeDone || (event.kind === "server lost" && traits.changes);
}
