/** What a contender is heard to say. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunningBackend } from "../../../support/backends.ts";
import { eventually } from "../../../support/eventually.ts";
import { Contender } from "./contender.ts";
import type { ObserverProcess } from "./observer_process.ts";
import { heardOut } from "./round_waits.ts";

test("what is said of a script after its end is heard, too", async () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-contender-"));
  const leave = join(folder, "script", "leave");
  const contender = await Contender.start({ nodes: [] } as unknown as RunningBackend, {
    group: "g",
    name: "script",
    folder,
    lock: "fault",
    childKind: "plain",
    sessionTimeoutMs: 4000,
    observer: { watch: () => {}, pid: 0 } as unknown as ObserverProcess,
    wrapper: {
      name: "a script that is killed before its holder process says why",
      command: () => ["sh", "-c", '(read -r _ <"$1"; echo "it is lost" >&2) & kill -KILL $$', "sh", leave],
    },
  });
  try {
    await eventually(() => contender.exit);
    expect(contender).toMatchObject({ exit: { signal: "SIGKILL" }, stderr: "", isSilent: false });
    contender.letLeave();
    await heardOut([contender]);
    expect(contender).toMatchObject({ stderr: "it is lost\n", isSilent: true });
  } finally {
    await contender.close();
    rmSync(folder, { recursive: true });
  }
});
