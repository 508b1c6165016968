/** Limits of a server: how much it keeps for others, and how long. */

/** The longest time that a server holds a get, in milliseconds. Its client then asks again. */
export const heldGetMsMax = 60_000;
/** How long a request without a deadline may wait for admission, in milliseconds. */
export const requestAdmissionMsMax = 10_000;
/** The most requests that wait for admission, of all topics together. */
export const pendingAdmissionsMax = 4096;
/** The most topics that are handed off, and received, at the same time. */
export const topicHandoffsMax = 32;
export const incomingTransfersMax = 32;
export const manageTopicRequestsMax = 32;
/** The most pieces of a topic that may be in flight before the receiver has confirmed the first of them. */
export const transferPiecesInFlightMax = 4;
/** A server aborts a transfer if the other side is silent for this long, in milliseconds. */
export const transferIdleMsMax = 10_000;
export const proxyReportEveryMs = 5000;
/** The most topics that one report lists. The coordination service has the complete list. */
export const proxyReportTopicsMax = 10_000;
/** The most responses that are queued for one peer: as many as requests can be in flight. */
export const queuedResponsesPerPeerMax = 100_000;
export const queuedResponseBytesPerPeerMax = 256 << 20;
