/** docs/examples/echo, as its comments say: clients are answered whoever leads. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";

setDefaultTimeout(60_000);

const hellos = (count: number) => Array.from({ length: count }, (_, number) => `Hello-${number}`);
const hello = (name: string) => hellos(10).map((line) => `${name}: ${line}\n`).join("");

test("Hello-0 to Hello-9 are answered by the leader, and by the other when the leader was killed", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" });
  const folder = join(import.meta.dir, "../../../docs/examples/echo");
  const env = { example: folder, BATON: session.env["baton"] ?? "" };
  const ports = await freePorts(2);
  const serve = (name: string, port: number | undefined) =>
    session.start(`exec sh "$example/server.sh" ${name} ${port}`, env);
  const leader = async () => (await session.run('"$baton" leader echo')).stdout.trim();
  const a = serve("a", ports[0]);
  await eventually(async () => await leader() === `127.0.0.1:${ports[0]}`, { withinMs: 20_000 });
  serve("b", ports[1]);

  const forwarding = session.start('exec "$baton" forward echo --listen :0');
  const port = await eventually(() => /forwarding 127\.0\.0\.1:(\d+)/.exec(forwarding.stderr())?.[1]);
  const call = () => session.run(`sh "$example/client.sh" ${port}`, env);
  expect(await call()).toMatchObject({ code: 0, stdout: hello("a") });

  // A client that resets its connection, in the middle of a line and behind one.
  for (const said of ["Hello", "Hello\n"]) await reset(Number(ports[0]), said);
  expect(await call()).toMatchObject({ code: 0, stdout: hello("a") });
  expect(a.stderr()).not.toContain("ECONNRESET");

  // One that is in the middle of it has each line answered, by the one or the other.
  const long = session.start(`exec sh "$example/client.sh" ${port} 20000`, env);
  await eventually(() => long.stdout().includes("a: Hello-100\n"), { withinMs: 20_000 });
  process.kill(a.child.pid ?? 0, "SIGKILL");
  await a.ended;
  await eventually(async () => await leader() === `127.0.0.1:${ports[1]}`, { withinMs: 20_000 });
  const { code, stdout } = await long.ended;
  const answered = stdout.trimEnd().split("\n");
  expect([code, answered.map((line) => line.slice(3))]).toEqual([0, hellos(20_000)]);
  const byA = answered.filter((line) => line.startsWith("a: ")).length;
  expect([byA > 100, byA < 20_000]).toEqual([true, true]);
  expect(answered.slice(byA).every((line) => line.startsWith("b: "))).toBe(true);
  expect((await call()).stdout).toBe(hello("b"));
});

/** Resolves when the other side has taken the bytes and the connection is gone, without an orderly end. */
function reset(port: number, said: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(said, () => socket.resetAndDestroy());
    });
    socket.on("error", reject);
    socket.on("close", () => resolve());
  });
}
