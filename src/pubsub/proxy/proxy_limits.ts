/** How much a proxy keeps of what is under way. Over a limit a request is answered OVERLOADED at once. */

export interface ProxyLimits {
  /** Requests without an answer of one connection. */
  readonly perClient: number;
  /** Requests without an answer for one topic. */
  readonly perTopic: number;
  /** Requests without an answer in all. */
  readonly inAll: number;
  /** What those requests have in their frames, in bytes: of one connection, and in all. */
  readonly bytesPerClient: number;
  readonly bytesInAll: number;
  /**
   * Requests that one server has at once, but for those that may wait there for a message; the others queue, by clients
   * in turns. The smaller, the sooner a client with few requests comes behind one with many.
   */
  readonly windowPerServer: number;
  /** The same in bytes: one more is sent as long as fewer are under way. */
  readonly windowBytesPerServer: number;
}

export const proxyLimitsDefault: ProxyLimits = {
  perClient: 1024,
  perTopic: 16_384,
  inAll: 65_536,
  bytesPerClient: 192 << 20,
  bytesInAll: 512 << 20,
  windowPerServer: 1024,
  windowBytesPerServer: 16 << 20,
};

/** How long a request without `deadline-ms` is tried, in milliseconds; what it may wait for a message comes on top. */
export const requestTimeoutMsDefault = 5000;
/** No request is kept for longer, in milliseconds. */
export const requestTimeoutMsMax = 3_600_000;
