/** docs/examples/echo, as its README says: clients are answered whoever leads. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import process from "node:process";
import { BatonSession } from "../support/baton_session.ts";
import { eventually } from "../support/eventually.ts";
import { freePorts } from "../support/free_ports.ts";

setDefaultTimeout(60_000);

const hello = (name: string) => Array.from({ length: 10 }, (_, number) => `${name}: Hello-${number}\n`).join("");

test("Hello-0 to Hello-9 are answered by the leader, and by the other when the leader was killed", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" });
  const folder = join(import.meta.dir, "../../docs/examples/echo");
  const env = { example: folder, BATON: session.env["baton"] ?? "" };
  const ports = await freePorts(2);
  const serve = (name: string, port: number | undefined) =>
    session.start(`exec sh "$example/server.sh" ${name} ${port}`, env);
  const leader = async () => (await session.run('"$baton" leader echo')).stdout.trim();
  const a = serve("a", ports[0]);
  await eventually(async () => await leader() === `127.0.0.1:${ports[0]}`, { withinMs: 20_000 });
  serve("b", ports[1]);

  const forwarding = session.start('exec "$baton" forward echo --listen :0');
  const port = await eventually(() => /forwarded from 127\.0\.0\.1:(\d+)/.exec(forwarding.stderr())?.[1]);
  const call = () => session.run(`sh "$example/client.sh" ${port}`, env);
  expect(await call()).toMatchObject({ code: 0, stdout: hello("a") });

  process.kill(a.child.pid ?? 0, "SIGKILL");
  await a.ended;
  await eventually(async () => await leader() === `127.0.0.1:${ports[1]}`, { withinMs: 20_000 });
  // Whoever called in between was answered by nobody; from now on it is b, as soon as it listens.
  expect(await eventually(async () => (await call()).stdout || null, { withinMs: 20_000 })).toBe(hello("b"));
});
