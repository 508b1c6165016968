/** What the commands that hold something are made of, all of them; tests put something else in their place. */
import { processSignals, type SignalSource } from "../../src/cli/child/signal_source.ts";
import { connect, type ConnectOptions } from "../../src/clients/zookeeper/client.ts";
import type { ZooKeeper } from "../../src/clients/zookeeper/zookeeper.ts";
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
