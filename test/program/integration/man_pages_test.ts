/** The man pages with the programs that read them: man, and groff with all of its warnings. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describeWithPeer } from "../../support/peers.ts";

setDefaultTimeout(120_000);

const project = join(import.meta.dir, "../../..");
let folder = "";
let pages: string[] = [];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "baton-man-"));
  const env = { ...process.env, SOURCE_DATE_EPOCH: "1767225600" };
  const made = spawnSync(process.execPath, ["scripts/gen_man.ts", folder], { cwd: project, env });
  expect([made.status, made.stderr.toString()]).toEqual([0, ""]);
  pages = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.\d$/.test(name));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("pages stand in the folder of their section, with the date of the source", () => {
  expect(pages).toEqual(
    expect.arrayContaining(["man1/baton.1", "man1/baton-lock.1", "man5/baton.toml.5", "man7/baton-times.7"]),
  );
  for (const page of pages) {
    expect(readFileSync(join(folder, page), "utf8")).toMatch(
      /^\.TH "\S+" \d "2026-01-01" "baton [\d.]+" "baton manual"$/m,
    );
  }
});

describeWithPeer("groff", "groff", () => {
  test("reports no warning for any page, on paper and on a terminal", () => {
    for (const device of ["ps", "utf8", "ascii"]) {
      const checked = spawnSync("groff", [
        "-man",
        "-ww",
        "-z",
        `-T${device}`,
        ...pages.map((page) => join(folder, page)),
      ]);
      expect([device, checked.status, checked.stderr.toString()]).toEqual([device, 0, ""]);
    }
  });
});

describeWithPeer("mandoc", "mandoc", () => {
  test("finds no error and no warning in any page", () => {
    const checked = spawnSync("mandoc", ["-T", "lint", "-W", "warning", ...pages.map((page) => join(folder, page))]);
    expect([checked.status, checked.stdout.toString()]).toEqual([0, ""]);
  });
});

describeWithPeer("man", "man", () => {
  test("shows a page with all options, and each can be copied to a shell", () => {
    const env = { ...process.env, MANWIDTH: "100", LC_ALL: "C.UTF-8", MAN_KEEP_FORMATTING: "" };
    const shown = spawnSync("man", ["-l", join(folder, "man1/baton-lock.1")], { env });
    expect(shown.status).toBe(0);
    const text = shown.stdout.toString();
    expect(text).toContain("baton-lock - run a command while holding a lock");
    for (
      const part of ["-w, --wait <", "--recipe <curator|curator-rw|kazoo>", "-E, --conflict-exit-code", "./backup.sh"]
    ) {
      expect(text).toContain(part);
    }
    for (const heading of ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "SEE ALSO"]) {
      expect(text).toMatch(new RegExp(`^${heading}$`, "m"));
    }
    expect(text).toMatch(/^ {3}Waiting$/m);
  });
});
