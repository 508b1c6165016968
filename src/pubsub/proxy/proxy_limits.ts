/** Limits of a proxy for requests in flight. A request above a limit gets the response OVERLOADED immediately. */

export interface ProxyLimits {
  /** Requests in flight of one connection. */
  readonly requestsPerClient: number;
  /** Requests in flight for one topic. */
  readonly requestsPerTopic: number;
  /** Requests in flight in total. */
  readonly requestsInAll: number;
  /** Bytes in the frames of the requests in flight: of one connection, and in total. */
  readonly bytesPerClient: number;
  readonly bytesInAll: number;
  /**
   * Requests in flight at one server, without gets that may wait there for a message. Other requests wait in a fair
   * queue. A smaller window reduces the time that a client with few requests waits for a client with many.
   */
  readonly windowPerServer: number;
  /** The same limit in bytes: another request is sent while less than this is in flight. */
  readonly windowBytesPerServer: number;
}

export const proxyLimitsDefault: ProxyLimits = {
  requestsPerClient: 1024,
  requestsPerTopic: 16_384,
  requestsInAll: 65_536,
  bytesPerClient: 192 << 20,
  bytesInAll: 512 << 20,
  windowPerServer: 1024,
  windowBytesPerServer: 16 << 20,
};

/** Milliseconds that a request without `deadline-ms` is tried. The time that a get may wait for a message is added. */
export const requestTimeoutMsDefault = 5000;
/** Milliseconds: the maximum time that a request is kept. */
export const requestTimeoutMsMax = 3_600_000;
