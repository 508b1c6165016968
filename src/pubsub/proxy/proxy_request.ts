/** A request in flight in a proxy: its client, its content, and where it is. */
import type { FairQueueEntry } from "./fair_queue.ts";
import type { RequestTraits, TopicPutOrder } from "./request_traits.ts";

/** A client's connection to the front socket, while it has requests in flight. */
export interface ProxyRequestClient {
  readonly identity: Uint8Array;
  requests: number;
  bytes: number;
}

export interface ProxyRequest {
  readonly client: ProxyRequestClient;
  readonly traits: RequestTraits;
  /** All frames up to and including the empty frame. The response must start with them. */
  readonly envelope: readonly Uint8Array[];
  /** The frames that the proxy sends to the server, unchanged. */
  readonly frames: readonly Uint8Array[];
  readonly bytes: number;
  readonly arrivedMs: number;
  /** The tick of the request's deadline in the deadline wheel. */
  tick: number;
  tries: number;
  connectionLosses: number;
  mayBeDone: boolean;
  location: ProxyRequestLocation;
  /** The position of a delayed put among the puts of its session; null for all other requests. */
  putOrder: TopicPutOrder | null;
  /** The server to which the request was last sent, or will be sent. */
  target: { readonly owner: string; readonly epoch: number } | null;
  /**
   * How many times the request was delayed, because no server was available or the server responded with OVERLOADED.
   */
  delayCount: number;
  /** The reason why the request is not done yet, for the response at its deadline. */
  pendingReason: string;
}

interface RequestHolder {
  drop(request: ProxyRequest): void;
}

export type ProxyRequestLocation =
  /** The owner of the topic is being looked up. */
  | { readonly kind: "routing" }
  /** No server is available, or the request will be sent again soon. */
  | { readonly kind: "delayed"; readonly cancel: () => void }
  | { readonly kind: "queued"; readonly link: RequestHolder; readonly place: FairQueueEntry<ProxyRequest> }
  | { readonly kind: "sent"; readonly link: RequestHolder; readonly number: number }
  /** The request has its response, or its client has disconnected. */
  | { readonly kind: "over" };
