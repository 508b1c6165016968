/**
 * Writes docs/picture/lock.svg again: records a session of the compiled binary in two terminals.
 * test/operator/cli/picture_test.ts records it again and fails when the binary shows something else than the picture.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { recordLockSession } from "./picture/lock_session.ts";

if (process.argv.includes("--help")) {
  console.log("Usage: scripts/gen_picture.ts          after scripts/build");
  process.exit();
}

const root = join(import.meta.dirname ?? ".", "..");
const { svg, transcript } = await recordLockSession(process.env["BATON_BINARY"] ?? join(root, "dist/baton"));
mkdirSync(join(root, "docs/picture"), { recursive: true });
writeFileSync(join(root, "docs/picture/lock.svg"), svg);
console.log(transcript);
