/**
 * The states of one topic on one server during one session, and the events that lead from a state to another state.
 * Pure: `OwnedTopic` reports the events and carries out the actions.
 *
 *   any state ──┬─ serve ────▶ served ───────────────── close ─▶ unsettled (the first state)
 *               │                └── seal ──┐
 *               ├─ hand off ─────────────▶ handing off ── end, fail, give up ─▶ unsettled
 *               ├─ none ─────▶ waiting, if data is left here; otherwise elsewhere
 *               ├─ missing ──▶ missing
 *               └─ work ─────▶ unsettled; a handoff goes on
 *
 *   all except served ──┬─ fail ────▶ unsettled
 *                       └─ receive ─▶ receiving ── received ─▶ the state before
 *
 * - serve, hand off, none, missing: decisions of `decideTopic`
 * - work: any other decision of `decideTopic`, which then decides again
 * - seal: almost all messages are sent, so no request is admitted from now on
 * - close: a deletion or a move within the store begins, the store has lost the topic, or the session has ended
 * - fail: a shared database has refused a step
 * - end: the call has completed or failed; the next call continues the handoff until the deadline
 * - give up: the handoff has failed, and the server may not take the topic back
 * - receive: content of another server begins to arrive
 * - received: the content has arrived, or its transfer has failed
 *
 * | state       | the topic's node as last read                                             | answer to a request |
 * | ----------- | ------------------------------------------------------------------------- | ------------------- |
 * | unsettled   | any: not read yet, or between two decisions                               | OVERLOADED          |
 * | served      | this server's, `stored`                                                   | OK under the lease  |
 * | handing off | this server's, `stored` or `sealed`; the receiver's, when it has taken it | OVERLOADED          |
 * | receiving   | the sender's, `stored` or `sealed`                                        | NOT_OWNER           |
 * | waiting     | another server's, most often `moving`: this copy stays until `stored`     | NOT_OWNER           |
 * | elsewhere   | another server's, or none                                                 | NOT_OWNER           |
 * | missing     | this server's; the content that it names is not here                      | DAMAGED             |
 *
 * In all states except served, the answer is NOT_OWNER if the node names another server or is not known.
 */
import type { OwnershipLease } from "./ownership_lease.ts";
import type { TopicAction, TopicDecisionFacts } from "./topic_decision.ts";
import type { TopicNode } from "./topic_node.ts";

/**
 * Identifies the content for which requests are admitted. A request keeps the permit from its admission to its
 * response.
 */
export interface TopicPermit {
  readonly epoch: number;
  readonly incarnation: string;
  /** The session's lease under which the request was admitted. OK may be sent while the lease is confirmed. */
  readonly lease: Pick<OwnershipLease, "isConfirmed">;
}

export type TopicState =
  | {
    readonly kind: "unsettled";
    readonly problem?: string | undefined;
    /** The deadline of a handoff that an earlier call has begun and not given up. */
    readonly deadlineMs?: number | undefined;
  }
  | { readonly kind: "served"; readonly permit: TopicPermit }
  /** The server sends the sealed copy until the deadline. After that, it takes back the topic, if that is allowed. */
  | { readonly kind: "handing off"; readonly deadlineMs: number }
  | { readonly kind: "receiving" | "waiting" | "elsewhere" | "missing" };

export const firstTopicState: TopicState = { kind: "unsettled" };

/**
 * Returns the state after `decideTopic` has decided on `action` from `facts`. The server carries out the action in this
 * state.
 */
export function topicStateAfterDecision(
  state: TopicState,
  action: TopicAction["do"],
  { facts, lease, deadlineMs }: {
    readonly facts: TopicDecisionFacts;
    readonly lease: TopicPermit["lease"];
    readonly deadlineMs: number;
  },
): TopicState {
  switch (action) {
    case "serve": {
      if (facts.copy === null) return state; // only an open copy is served
      const { epoch, incarnation } = facts.copy;
      const isServed = state.kind === "served" && state.permit.epoch === epoch &&
        state.permit.incarnation === incarnation;
      return isServed ? state : { kind: "served", permit: { epoch, incarnation, lease } };
    }
    case "hand off":
      return { kind: "handing off", deadlineMs: begunDeadline(state) ?? deadlineMs };
    case "none":
      return { kind: isDataLeft(facts) ? "waiting" : "elsewhere" };
    case "missing":
      return { kind: "missing" };
    default:
      return state.kind === "handing off" ? state : { kind: "unsettled", deadlineMs: begunDeadline(state) };
  }
}

/** Returns the state after the server has stopped admitting requests. */
export function topicStateAfterClose(state: TopicState): TopicState {
  return state.kind === "served" ? { kind: "unsettled" } : state;
}

/**
 * Returns the state after a shared database has refused a step. A served topic stays served, because its rows tell
 * which server may write.
 */
export function topicStateAfterFailure(state: TopicState, problem: string): TopicState {
  return state.kind === "served" ? state : { kind: "unsettled", problem, deadlineMs: begunDeadline(state) };
}

/** Returns the state after a call has completed or failed. The next call continues the handoff. */
export function topicStateAfterCall(state: TopicState): TopicState {
  return state.kind === "handing off" ? { kind: "unsettled", deadlineMs: state.deadlineMs } : state;
}

function begunDeadline(state: TopicState): number | undefined {
  return state.kind === "unsettled" || state.kind === "handing off" ? state.deadlineMs : undefined;
}

/** Returns true if this server stores data that waits for another server. */
function isDataLeft({ copy, staged, unopened, shared, node }: TopicDecisionFacts): boolean {
  const isLeftInDatabase = shared !== null && node?.store !== shared.store && (unopened ?? null) !== null;
  return copy !== null || staged !== null || isLeftInDatabase;
}

/**
 * Returns true if content is being sent or received. A request does not wait for the end of the transfer, which may
 * take long.
 */
export function isTopicInTransfer({ kind }: TopicState): boolean {
  return kind === "handing off" || kind === "receiving";
}

/** Tells whether a server can answer requests for a topic, and if not, why. */
export type TopicAvailability =
  /** Requests may be admitted. They may be answered with OK while `isConfirmed` returns true. */
  | { readonly kind: "serving"; readonly permit: TopicPermit }
  /** The response is NOT_OWNER. The owner is empty if no server has the topic. */
  | { readonly kind: "elsewhere"; readonly owner: string; readonly epoch: number }
  /** The response is NOT_OWNER, because no proxy has assigned the topic to a server. */
  | { readonly kind: "unassigned" }
  /** The response is OVERLOADED, because the topic is moving or could not be opened. The request may be sent again. */
  | { readonly kind: "moving"; readonly why?: string | undefined }
  /** The response is DAMAGED, because the topic belongs to this server but the topic's data is missing. */
  | { readonly kind: "missing" }
  /** The response is OVERLOADED, because this server has no lease at present. */
  | { readonly kind: "away" };

/**
 * Returns the availability of a topic in a state. `node` is the node as last read; undefined if there is no node or it
 * was not read.
 */
export function topicAvailabilityIn(state: TopicState, node: TopicNode | undefined, me: string): TopicAvailability {
  if (state.kind === "served") return { kind: "serving", permit: state.permit };
  if (node === undefined) return { kind: "unassigned" };
  if (node.owner !== me) return { kind: "elsewhere", owner: node.owner, epoch: node.epoch };
  if (state.kind === "missing") return { kind: "missing" };
  return { kind: "moving", why: state.kind === "unsettled" ? state.problem : undefined };
}

export type TopicHandoffResult =
  | { readonly kind: "moved"; readonly epoch: number }
  | { readonly kind: "kept"; readonly why: string };

export function whyTopicNotServed(state: TopicState): string {
  if (state.kind === "unsettled" && state.problem !== undefined) return state.problem;
  return `this server does not ${state.kind === "missing" ? "have its data" : "serve it"}`;
}

/** Returns the result of a completed handoff. `whyKept` is the reason why the last attempt failed; it may be empty. */
export function topicHandoffResult(to: string, node: TopicNode | undefined, whyKept: string): TopicHandoffResult {
  if (node?.owner === to) return { kind: "moved", epoch: node.epoch };
  return { kind: "kept", why: whyKept === "" ? `its node names the owner "${node?.owner}"` : whyKept };
}
