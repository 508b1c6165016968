/** TZ, as users and images set it: a name, `:NAME`, the path of a file. A value that means no zone is said. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { constants } from "node:os";
import { BatonSession } from "../../support/baton_session.ts";
import { PtySession } from "../../support/pty_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => {
  session = new BatonSession({ BATON_SERVERS: "embedded" });
  writeFileSync(session.path("jobs"), "0 3 * * * true\n");
});
afterAll(() => session[Symbol.asyncDispose]());

test.each(["Asia/Tokyo", ":Asia/Tokyo", "/usr/share/zoneinfo/Asia/Tokyo", ":/usr/share/zoneinfo/Asia/Tokyo"])(
  "schedules with TZ=%s are in that zone, which the servers keep by its name",
  async (TZ) => {
    // The same schedule for the servers: another zone would be refused.
    const ticks = await session.run(
      `for zone in '' '--timezone Asia/Tokyo'; do "$baton" lock same --tick '0 3 * * *' $zone -- true; done`,
      { TZ },
    );
    expect(ticks.stderr).toMatch(
      /^(baton: Schedule "0 3 \* \* \*" of lock "same" .* the next tick is \S+T18:00Z\n){2}$/,
    );
    expect((await session.run('"$baton" cron next jobs', { TZ })).stdout).toContain("T18:00Z");
  },
);

test("the command keeps the TZ that baton was started with", async () => {
  const TZ = ":/usr/share/zoneinfo/Asia/Tokyo";
  expect((await session.run(`"$baton" lock -q l -- sh -c 'echo "$TZ"'`, { TZ })).stdout).toBe(`${TZ}\n`);
});

test.each(["Asia/Nowhere", "/etc/passwd", "CET-1CEST"])("TZ=%s is refused by schedules (78)", async (TZ) => {
  const stderr = expect.stringContaining(`TZ is "${TZ}", which is not a time zone that this machine knows`);
  expect(await session.run("\"$baton\" lock t --tick '0 3 * * *' -- true", { TZ })).toMatchObject({ code: 78, stderr });
  expect(await session.run('"$baton" cron check jobs', { TZ })).toMatchObject({ code: 78, stderr });
  expect((await session.run("\"$baton\" lock t --tick '0 3 * * *' --timezone UTC -- true; echo $?", { TZ })).stdout)
    .toBe("81\n");
});

test("baton ls --watch shows the time in the zone of TZ, or says that it does not", async () => {
  const watch = async (TZ: string) => {
    const env = { ...session.env, TZ };
    await using pty = new PtySession(["/bin/sh", "-c", 'exec "$baton" ls --watch'], { env, cwd: session.folder });
    await pty.shows("in use below");
    pty.signal(constants.signals.SIGTERM);
    await pty.ended();
    return pty.output;
  };
  const hourIn = (zone: string) =>
    new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit" }).format(Date.now());
  const before = hourIn("Asia/Tokyo");
  const shown = await watch("/usr/share/zoneinfo/Asia/Tokyo");
  expect([before, hourIn("Asia/Tokyo")]).toContain(/(\d\d):\d\d:\d\d/.exec(shown)?.[1] ?? "");
  expect(shown).not.toContain("TZ");
  expect(await watch("CET-1CEST")).toContain(
    'baton: warning: TZ is "CET-1CEST", which is not a time zone that this machine knows; times are in UTC',
  );
});
