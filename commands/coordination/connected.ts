/** What the commands that only look or ask have in common: a connection for the length of a call. */
import { connect } from "../../src/clients/zookeeper/client.ts";
import type { ZooKeeper } from "../../src/clients/zookeeper/zookeeper.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import type { Call } from "../command.ts";
import { type Coordination, coordinationOf, reach } from "./coordination.ts";

type ConnectedCall = Pick<Call<typeof connectionSettings>, "values" | "sources" | "io">;

/** Connects, works, closes. Where nobody said where to look, a line on stderr says where it was. */
export async function connected<T>(
  { values, sources, io }: ConnectedCall,
  work: (zk: ZooKeeper, place: Coordination) => Promise<T>,
): Promise<T> {
  const place = coordinationOf(values, sources);
  if (place.assumed && !values.quiet) {
    io.err(
      `baton: this is about ${
        reach[place.scope]
      }; --servers names an ensemble, --servers embedded says this is meant\n`,
    );
  }
  await using zk = await connect(place.connect);
  return await work(zk, place);
}
