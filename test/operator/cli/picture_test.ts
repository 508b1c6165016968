/** The picture of the README shows what the binary shows today. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { comparableTranscript, readTranscript, recordLockSession } from "../../../scripts/picture/lock_session.ts";
import { requireBinary, runtimes } from "../../support/runtimes.ts";

setDefaultTimeout(120_000);

test.skipIf(process.platform !== "linux")("the session of the picture still goes as it is drawn", async () => {
  requireBinary();
  const picture = readFileSync(join(import.meta.dir, "../../../docs/picture/lock.svg"), "utf8");
  const { transcript } = await recordLockSession(runtimes[0]?.command[0] ?? "");
  // If the new session is right: bun scripts/gen_picture.ts
  expect(comparableTranscript(transcript).split("\n")).toEqual(
    comparableTranscript(readTranscript(picture)).split("\n"),
  );
});
