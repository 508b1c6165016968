/** The workflows of the hosting site call scripts that exist, and actions of a known commit, with few rights. */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const root = join(import.meta.dirname, "../../../..");
const folder = join(root, ".github/workflows");
const workflowShape = z.looseObject({
  permissions: z.strictObject({ contents: z.literal("read") }),
  jobs: z.record(
    z.string(),
    z.looseObject({
      "timeout-minutes": z.number(),
      permissions: z.record(z.string(), z.string()).optional(),
      steps: z.array(z.looseObject({ uses: z.string().optional(), run: z.string().optional() })),
    }),
  ),
});

const workflows = Object.fromEntries(
  readdirSync(folder).map((name) => {
    const text = readFileSync(join(folder, name), "utf8");
    return [name, { text, ...workflowShape.parse(Bun.YAML.parse(text)) }];
  }),
);
const stepsOf = (name: string) => Object.values(workflows[name]?.jobs ?? {}).flatMap(({ steps }) => steps);
const commandsOf = (name: string) => stepsOf(name).flatMap(({ run }) => run ?? []);

for (const name of Object.keys(workflows)) {
  describe(name, () => {
    test("calls scripts of this repository that exist", () => {
      const scripts = commandsOf(name).flatMap((line) => /\bsh (\S+)/.exec(line)?.[1] ?? []);
      expect(scripts.length).toBeGreaterThan(0);
      for (const script of scripts) expect([script, existsSync(join(root, script))]).toEqual([script, true]);
    });

    test("uses actions by commit, with the version as a comment, and leaves no credentials behind", () => {
      const used = stepsOf(name).flatMap(({ uses }) => uses ?? []);
      for (const action of used) {
        expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
        expect(workflows[name]?.text).toMatch(new RegExp(`${action} # v\\d+\\.\\d+\\.\\d+\\n`));
      }
      const checkout = stepsOf(name).find(({ uses }) => uses?.startsWith("actions/checkout@"));
      expect(checkout).toMatchObject({ with: { "persist-credentials": false } });
    });
  });
}

test("a push runs the test command of the README, a night the command of .ci, a tag the release script", () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  expect(commandsOf("test.yml")).toEqual(["sh scripts/test"]);
  expect(readme).toMatch(/^sh scripts\/test +#/m);
  expect(commandsOf("nightly.yml").join()).toContain("sh .ci/run");
  expect(commandsOf("release.yml")).toContain("sh scripts/release");
});

test("only a release may write, and its files are attested before they are published", () => {
  const writers = Object.entries(workflows).flatMap(([name, { jobs }]) =>
    Object.values(jobs).some(({ permissions }) => permissions !== undefined) ? [name] : []
  );
  expect(writers).toEqual(["release.yml"]);
  const steps = stepsOf("release.yml").map(({ uses = "", run = "" }) => uses.split("@")[0] || run);
  expect(steps.indexOf("actions/attest-build-provenance")).toBeGreaterThan(0);
  expect(steps.indexOf("actions/attest-build-provenance")).toBeLessThan(steps.indexOf("sh scripts/release"));
});

test("the image is pinned by its digest, and does not run as root", () => {
  const dockerfile = readFileSync(join(root, "docs/examples/container/Dockerfile"), "utf8");
  const bases = [...dockerfile.matchAll(/^FROM (\S+:\S+)/gm)].map(([, base]) => base);
  expect(bases).toEqual([expect.stringMatching(/^alpine:3\.\d+@sha256:[0-9a-f]{64}$/)]);
  expect(dockerfile.indexOf("\nUSER baton\n")).toBeLessThan(dockerfile.indexOf("\nENTRYPOINT "));
  expect(dockerfile).toContain("\nUSER baton\n");
});
