/**
 * The files of a release that are made of tables: the formula, the bill of materials, the notices, the Linux packages'
 * units.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bundledPackages, bundledRuntime, thirdPartyNotices } from "../../../../scripts/packages/bundled_packages.ts";
import { executableFormat } from "../../../../scripts/packages/executable_format.ts";
import { homebrewFormula } from "../../../../scripts/packages/homebrew.ts";
import { packagedUnit } from "../../../../scripts/packages/linux_packages.ts";
import { releasePlatforms } from "../../../../scripts/packages/platforms.ts";
import { billOfMaterials } from "../../../../scripts/packages/sbom.ts";
import { projectIn } from "../../../support/release_project.ts";

const root = join(import.meta.dirname, "../../../..");
const project = projectIn(root);
/** The packages that package.json depends on, and those that they depend on, as they are installed. */
const dependencies = (function withTheirs(file: string, found: Set<string>): string[] {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(file, "utf8")) as Record<string, object>;
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    if (found.has(name)) continue;
    found.add(name);
    withTheirs(join(root, "node_modules", name, "package.json"), found);
  }
  return [...found];
})(join(root, "package.json"), new Set());

describe("the formula", () => {
  test("has the address and the checksum of each archive that Homebrew's systems run", () => {
    const formula = homebrewFormula(project, (name) => `sum of ${name}`);
    expect(formula.match(/^ *(on_\w+|url .*|sha256 .*)/gm)?.map((line) => line.trim())).toEqual([
      "on_macos",
      "on_intel",
      ...source("darwin-x64"),
      "on_arm",
      ...source("darwin-arm64"),
      "on_linux",
      "on_intel",
      ...source("linux-x64"),
      "on_arm",
      ...source("linux-arm64"),
    ]);
    expect(formula.match(/\b(do|class)\b|^ {2}def /gm)?.length).toBe(formula.match(/^ *end$/gm)?.length);
  });

  const source = (platform: string) => {
    const name = `baton-1.2.3-${platform}.tar.gz`;
    return [`url "https://example.org/baton/releases/download/v1.2.3/${name}"`, `sha256 "sum of ${name}"`];
  };

  test("leaves out an archive that was not built", () => {
    expect(homebrewFormula(project, (name) => name.includes("darwin-x64") ? "sum" : null)).not.toContain("on_linux");
  });
});

describe("the bill of materials", () => {
  const bill = JSON.parse(billOfMaterials(project));

  test("has every dependency and the runtime, with version, license and checksum", () => {
    const names = bill.components.map(({ name }: { name: string }) => name);
    expect(names).toEqual([...dependencies.toSorted(), "bun", "JavaScriptCore"]);
    expect(bill.components[0]).toMatchObject({
      version: bundledPackages(root)[0]?.version,
      licenses: [{ license: { id: "MIT" } }],
      purl: expect.stringMatching(/^pkg:npm\/%40noble\/ciphers@\d/),
      hashes: [{ alg: "SHA-512", content: expect.stringMatching(/^[0-9a-f]{128}$/) }],
    });
  });

  test("has the form that CycloneDX 1.6 requires, and its references exist", () => {
    expect(bill).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.6", version: 1 });
    expect(bill.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const all = [bill.metadata.component, ...bill.components].map((each) => each["bom-ref"]);
    for (const { ref, dependsOn } of bill.dependencies) {
      expect(all).toEqual(expect.arrayContaining([ref, ...dependsOn]));
    }
  });

  test("is the same for the same source, and another for another version", () => {
    expect(billOfMaterials(project)).toBe(billOfMaterials(project));
    const next = JSON.parse(billOfMaterials({ ...project, version: "1.2.4" }));
    expect(next.serialNumber).not.toBe(bill.serialNumber);
  });
});

test("the notices have the license of every dependency, and name what the runtime links", () => {
  const notices = thirdPartyNotices(root);
  for (const name of dependencies) {
    const section = notices.split("\n## ").find((each) => each.startsWith(`${name} `));
    expect(section).toMatch(/^ {4}Copyright (\(c\)|©) /m);
  }
  expect(notices).toContain(`## Bun ${bundledRuntime(root).version} (MIT)`);
  expect(notices).toContain("JavaScriptCore");
  expect(notices).not.toContain("VERSION");
});

test("the units of deb and rpm start the binary where the packages put it", () => {
  const examples = join(root, "docs/examples");
  for (const name of readdirSync(examples).filter((each) => each.endsWith(".service"))) {
    expect(packagedUnit(readFileSync(join(examples, name), "utf8"))).toMatch(/^ExecStart=\/usr\/bin\/baton /m);
  }
});

test("npm's names of the platforms are those of the Bun executables that package-lock.json pins", () => {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, unknown>;
  };
  for (const { runtimePackage, os, cpu, libc } of releasePlatforms) {
    expect(lock.packages[`node_modules/${runtimePackage}`]).toMatchObject({
      os: [os],
      cpu: [cpu],
      ...(libc === null ? {} : { libc: [libc] }),
    });
  }
});

test("deno.lock pins the dependencies of package.json, and their packages as package-lock.json does", () => {
  const read = <T>(name: string) => JSON.parse(readFileSync(join(root, name), "utf8")) as T;
  const { dependencies, devDependencies } = read<Record<string, Record<string, string>>>("package.json");
  const { specifiers, npm } = read<{
    specifiers: Record<string, string>;
    npm: Record<string, { integrity: string }>;
  }>("deno.lock");
  const direct = Object.entries({ ...dependencies, ...devDependencies }).map(([name, version]) =>
    `npm:${name}@${version}`
  );
  expect(Object.keys(specifiers).sort()).toEqual(direct.sort());
  const { packages } = read<{ packages: Record<string, { version: string; integrity?: string }> }>("package-lock.json");
  for (const [path, { version, integrity }] of Object.entries(packages)) {
    const name = path.replace(/^.*node_modules\//, "");
    const pinned = Object.entries(npm).find(([key]) =>
      key === `${name}@${version}` || key.startsWith(`${name}@${version}_`)
    );
    if (path !== "" && integrity !== undefined) expect([name, pinned?.[1].integrity]).toEqual([name, integrity]);
  }
});

test("the format of a binary says which machine runs it", () => {
  expect(executableFormat(readFileSync(process.execPath))).toMatchObject({ os: process.platform, cpu: process.arch });
  expect(() => executableFormat(Buffer.from("#!/bin/sh\necho a script is no binary of baton\n".padEnd(200))))
    .toThrow("not an executable");
});
