/**
 * Two candidates: one leads and steps down, then the other leads; an observer sees both:
 *
 *     bun docs/examples/library/election.ts SERVERS        deno run -A docs/examples/library/election.ts SERVERS
 */
import process from "node:process";
import { Election, parseServers } from "../../../src/library/baton.ts";

const servers = parseServers(process.argv[2] ?? "127.0.0.1:2181");
await using one = new Election({ servers }, "echo");
await using other = new Election({ servers }, "echo");
await using observer = new Election({ servers }, "echo");

const changes = observer.changes();
await changes.next(); // the leader at the start: none

const first = await one.campaign("10.0.0.1:7000");
const next = other.campaign("10.0.0.2:7000");
await first.release();
await using second = await next;
let leaders = 0;
for await (const change of changes) {
  if (change.kind !== "elected") continue;
  console.log(`${change.grant.value} leads`);
  if (++leaders === 2) break;
}
console.log(`tokens grow: ${second.fencingToken > first.fencingToken}`);
