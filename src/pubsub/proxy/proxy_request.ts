/** A request under way in a proxy: who sent it, what it is, and where it is now. */
import type { QueueEntry } from "./fair_queue.ts";
import type { RequestTraits } from "./request_traits.ts";

/** A connection of the front socket, for as long as requests of it are under way. */
export interface ProxyClient {
  /** As the front socket knows it. */
  readonly identity: Uint8Array;
  requests: number;
  bytes: number;
}

export interface ProxyRequest {
  readonly client: ProxyClient;
  readonly traits: RequestTraits;
  /** Everything of the front's message up to the empty frame, which the answer begins with. */
  readonly envelope: readonly Uint8Array[];
  /** What goes to the server, as it came. */
  readonly frames: readonly Uint8Array[];
  readonly bytes: number;
  readonly arrivedMs: number;
  /** Of its deadline in the wheel. */
  tick: number;
  tries: number;
  losses: number;
  mayBeDone: boolean;
  location: RequestLocation;
  /** Whom it was last sent to, or is to be. */
  target: { readonly owner: string; readonly epoch: number } | null;
  /** Times that there was nobody to send it to, or that it was told to come later. */
  delays: number;
  /** Why it is not done yet, for the answer when the time is over. */
  pendingReason: string;
}

/** A server link that has the request. */
interface RequestHolder {
  /** Removes the request; its response is not awaited any longer. */
  drop(request: ProxyRequest): void;
}

export type RequestLocation =
  /** Its topic's server is looked up. */
  | { readonly kind: "routing" }
  /** There is nobody to send it to, or it is to be sent again in a moment. */
  | { readonly kind: "delayed"; readonly cancel: () => void }
  | { readonly kind: "queued"; readonly link: RequestHolder; readonly place: QueueEntry<ProxyRequest> }
  | { readonly kind: "sent"; readonly link: RequestHolder; readonly number: number }
  /** It was answered, or nobody wants the answer. */
  | { readonly kind: "over" };
