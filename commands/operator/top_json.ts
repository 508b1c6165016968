/** The JSON of `baton top --json`. Pure. */
import type { TopJson } from "../json_shapes/top_shapes.ts";
import { useHolderJson, useWaiterJson } from "./who_view.ts";
import type { TopReading } from "./top_reading.ts";

const timeOrNull = (ms: number | null) => ms === null ? null : new Date(ms).toISOString();

export function topJson(reading: TopReading): TopJson {
  const { atMs, servers, root, uses, topics, pubsubServers, stores, processes, problems } = reading;
  return {
    version: 1,
    at: new Date(atMs).toISOString(),
    servers,
    root,
    uses: uses.map(({ holder, next, ...use }) => ({
      ...use,
      first_holder: holder === null ? null : useHolderJson(holder),
      first_waiter: next === null ? null : useWaiterJson(next),
    })),
    topics: [...topics],
    pubsub_servers: [...pubsubServers],
    stores: stores.map(({ name, folder, isPaused, waiting, inFlight, dead, done, oldestMs, nextMs }) => ({
      name,
      folder,
      paused: isPaused,
      waiting,
      in_flight: inFlight,
      dead,
      done,
      oldest: timeOrNull(oldestMs),
      next: timeOrNull(nextMs),
    })),
    processes: processes.map((one) => ({ ...one, counters: { ...one.counters }, gauges: { ...one.gauges } })),
    problems: [...problems],
  };
}
