/** How much a campaign has: who takes part, and how patient the roles are. */

/** T of servers and proxies, in milliseconds. */
export const sessionTimeoutMs = 3000;

/** The same for the full dose: many processes on few processors lose shorter leases all the time, and put little. */
export const fullSessionTimeoutMs = 8000;

/** Beside these clients: five of the binary, and two that know the paper alone. */
export const fullCrew = { publishers: 7, subscribers: 9, workers: 4 } as const;

/** For the gate. */
export const shortCrew = { publishers: 3, subscribers: 4, workers: 2 } as const;
