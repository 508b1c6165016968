/** A backend for all tests of a `describe`, and a client of it that looks at what the tests do. */
import { afterAll, beforeAll } from "bun:test";
import { parseZooKeeperServers } from "../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import type { Backend, RunningBackend } from "./backend.ts";

export interface ObservedBackend {
  /** From the first test on. */
  readonly backend: RunningBackend;
  readonly observer: ZooKeeper;
}

/** Starts before the first test, and ends behind the last one. */
export function observedBackend(kind: Backend): ObservedBackend {
  let started: ObservedBackend | null = null;
  const running = (): ObservedBackend => {
    if (started === null) throw new Error(`${kind.name} has not been started: it is there in tests only`);
    return started;
  };
  beforeAll(async () => {
    const backend = await kind.start();
    started = { backend, observer: await connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers) }) };
  }, 60_000);
  afterAll(async () => {
    await started?.observer.close();
    await started?.backend.close();
  });
  return {
    get backend() {
      return running().backend;
    },
    get observer() {
      return running().observer;
    },
  };
}
