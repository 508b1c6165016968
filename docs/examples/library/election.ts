/**
 * Two candidates: one leads and steps down, then the other leads; an observer sees both:
 *
 *     bun docs/examples/library/election.ts [SERVERS]        deno run -A docs/examples/library/election.ts [SERVERS]
 */
import process from "node:process";
import { campaign, watchLeader } from "../../../src/library/baton.ts";

const servers = process.argv[2];
const changes = watchLeader("echo", { servers });
await changes.next(); // the leader at the start: none

const first = await campaign("echo", "10.0.0.1:7000", { servers });
const next = campaign("echo", "10.0.0.2:7000", { servers });
await first.release();
const second = await next;
let leaders = 0;
for await (const change of changes) {
  if (change.kind !== "elected") continue;
  console.log(`${change.grant.value} leads`);
  if (++leaders === 2) break;
}
console.log(`tokens grow: ${second.token > first.token}`);
await second.release();
