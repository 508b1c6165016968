/** A project of which release files are made in tests. */
import type { ReleaseProject } from "../../scripts/packages/project.ts";

export const projectIn = (root: string): ReleaseProject => ({
  root,
  version: "1.2.3",
  description: "Locks",
  license: "MIT",
  author: "authors",
  scope: "@scope",
  homepage: "https://example.org/baton",
  epoch: 1_700_000_000,
});
