/** What the commands that hold something are made of, all of them; tests put something else in their place. */
import { processSignals, type SignalSource } from "../../src/process/supervise/signal_source.ts";
import { connect, type ConnectOptions } from "../../src/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import { type Clock, systemClock } from "../../src/support/clock.ts";

export interface JobDependencies {
  readonly clock: Clock;
  readonly signals: SignalSource;
  connect(options: ConnectOptions): Promise<ZooKeeper>;
}

export function jobDependencies(): JobDependencies {
  const clock = systemClock();
  return { clock, signals: processSignals(), connect: (options) => connect({ ...options, clock }) };
}
