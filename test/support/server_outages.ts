/** What can go wrong with all coordination servers, or with the one that leads, whatever uses them. */
import type { Backend, RunningBackend } from "./backends.ts";

export interface OutageContext {
  readonly backend: RunningBackend;
  /** The negotiated session timeout, in milliseconds. */
  readonly sessionTimeoutMs: number;
  readonly random: () => number;
  /** How long a fault lasts is part of what it is. */
  wait(milliseconds: number): Promise<void>;
}

interface ServerOutage {
  readonly name: string;
  /** Everywhere when left out. */
  readonly where?: (backend: Backend) => boolean;
  /** Does it, and heals it. */
  apply(context: OutageContext): Promise<void>;
}

export const span = (random: () => number, from: number, to: number): number => from + (to - from) * random();
const ensembleOnly = (backend: Backend) => backend.name.includes("three");

export const serverOutages: readonly ServerOutage[] = [
  {
    name: "all servers stopped for a while",
    async apply({ backend, random, sessionTimeoutMs, wait }) {
      backend.pause();
      await wait(span(random, 0.2, 1.5) * sessionTimeoutMs);
      backend.resume();
    },
  },
  {
    name: "all servers killed and restarted",
    async apply({ backend, random, sessionTimeoutMs, wait }) {
      await backend.kill();
      await wait(span(random, 0, 0.8) * sessionTimeoutMs);
      await backend.restart();
    },
  },
  {
    name: "leader killed",
    where: ensembleOnly,
    async apply({ backend, random, sessionTimeoutMs, wait }) {
      const leader = await backend.leader();
      await leader.kill();
      await wait(span(random, 0.5, 2) * sessionTimeoutMs);
      await leader.restart();
    },
  },
  {
    name: "leader stopped",
    where: ensembleOnly,
    async apply({ backend, random, sessionTimeoutMs, wait }) {
      const leader = await backend.leader();
      leader.pause();
      await wait(span(random, 0.3, 2) * sessionTimeoutMs);
      leader.resume();
    },
  },
];
