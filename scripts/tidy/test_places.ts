/** Rules about the folders of tests, so that a reader finds a folder's tests without a search. */
import { posix } from "node:path";
import type { Finding, SourceFile } from "./source_file.ts";

/**
 * Checks that a unit test is in the folder that mirrors what it tests: `test/pubsub/unit/store` has the tests of
 * `src/pubsub/store`, `test/pubsub/unit/zeromq` those of `src/protocols/zeromq`, `test/pubsub/unit/commands` those of
 * `commands/pubsub`.
 */
export function checkUnitFolders(files: readonly SourceFile[]): Finding[] {
  const folders = new Set(files.map(({ path }) => posix.dirname(path)));
  return files.flatMap(({ path }) => {
    const [, product, inside] = /^test\/(\w+)\/unit\/((?:\w+\/)*)\w+_test\.ts$/.exec(path) ?? [];
    if (product === undefined || inside === undefined) return [];
    const tested = testedFolders(product, inside.slice(0, -1));
    if (tested.some((folder) => folders.has(folder))) return [];
    const message = `a unit test stands in the folder of what it tests: there is no ${tested.join(" or ")} with files`;
    return [{ path, line: 1, message }];
  });
}

/** Returns the folders whose unit tests belong into the folder `inside` of the product's unit tests. */
function testedFolders(product: string, inside: string): string[] {
  if (inside === "commands" || inside.startsWith("commands/")) {
    const own = posix.join("commands", product, inside.slice("commands".length));
    return product === "program" ? [own, inside] : [own];
  }
  const tested = ["src", "src/protocols"].map((top) =>
    top === "src" ? posix.join(top, product, inside) : posix.join(top, inside)
  );
  return product === "program" ? [...tested, inside] : tested;
}
