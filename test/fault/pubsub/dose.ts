/** How much a campaign has: who takes part, and how patient the roles are. */

/** T of servers and proxies, in milliseconds. */
export const sessionTimeoutMs = 3000;

/** Twenty clients: these, and four processes of the binary. */
export const fullCrew = { publishers: 7, subscribers: 9, workers: 4 } as const;

/** For the gate. */
export const shortCrew = { publishers: 3, subscribers: 4, workers: 2 } as const;
