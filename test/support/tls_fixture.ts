/** The certificates in test/fixtures/tls as files whose keys are their user's alone, which git does not keep them. */
import { chmodSync, copyFileSync } from "node:fs";
import { join } from "node:path";

/** The path of `name`.pem; keys are copied into `folder`. */
export function tlsFixture(name: string, folder: string): string {
  const path = join(import.meta.dir, `../fixtures/tls/${name}.pem`);
  if (!name.endsWith("_key")) return path;
  const copy = join(folder, `${name}.pem`);
  copyFileSync(path, copy);
  chmodSync(copy, 0o600);
  return copy;
}
