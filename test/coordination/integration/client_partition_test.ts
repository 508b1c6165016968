import { expect, test } from "bun:test";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { formatAddress } from "../../../src/base/sockets/connection.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { describeBackend, type ServerNode, zooKeeperEnsemble } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { Partition } from "../../support/partition.ts";

const T = 4000;
const nothing = new Uint8Array(0);
const clock = systemClock();

describeBackend(zooKeeperEnsemble, () => {
  // A follower that is cut off goes on answering pings and reads until syncLimit ticks are over; the leader, which
  // hears of no session through it, ends them T after its last news.
  test("the lease of a client at a follower that is cut off ends before the leader ends its session", async () => {
    await using stack = new AsyncDisposableStack();
    const partition = new Partition();
    stack.defer(() => partition.close());
    const ensemble = await zooKeeperEnsemble.start({ portBetween: partition.portBetween, syncLimit: 6 });
    stack.defer(() => ensemble.close());
    const leader = await ensemble.leader();
    const [follower, other] = ensemble.nodes.filter((node) => node !== leader) as [ServerNode, ServerNode];
    const at = (...nodes: ServerNode[]) =>
      parseZooKeeperServers(nodes.map(({ address }) => formatAddress(address)).join(","));
    const holder = stack.use(await connectToZooKeeper({ servers: at(follower), sessionTimeoutMs: T }));
    const observer = stack.use(await connectToZooKeeper({ servers: at(leader, other), sessionTimeoutMs: 30_000 }));

    const unguarded = stack.use(await connectToZooKeeper({ servers: at(follower), sessionTimeoutMs: T }));
    holder.session.guard();
    await holder.create("/held", nothing, { mode: "ephemeral" });
    const startEndMs = holder.session.leaseEndMs();
    await eventually(() => holder.session.leaseEndMs() > startEndMs + T / 2, {
      withinMs: 3 * T,
      what: "the lease to move",
    });

    partition.isolate(ensemble.nodes.indexOf(follower));
    const cutMs = clock.now();
    expect(await unguarded.exists("/held")).not.toBeNull(); // the follower still answers
    await eventually(async () => await observer.exists("/held") === null, {
      withinMs: 3 * T,
      what: "the session to end",
    });
    const gap = clock.now() - holder.session.leaseEndMs();
    console.log(
      `the session ended ${Math.round(clock.now() - cutMs)} ms after the cut, the lease ${Math.round(gap)} ms before`,
    );
    expect(gap).toBeGreaterThan(0);
  }, 60_000);
});
