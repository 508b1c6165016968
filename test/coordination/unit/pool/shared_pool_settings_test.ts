import { expect, test } from "bun:test";
import { poolPath, type PoolPathTemplates } from "../../../../src/coordination/pool/pool_path.ts";
import {
  formatPoolRunInfo,
  parsePoolRunInfo,
  poolSettingsHash,
  poolSettingsMismatchError,
} from "../../../../src/coordination/pool/shared_pool_settings.ts";

const info = { host: "db1", pid: 812, user: "root", argv0: "import.sh", reason: "" };
const usual = { component: "{root}/locks/{component}", item: "{root}/locks/{component}%2F{item}" };
const mark = (templates: Partial<PoolPathTemplates>, { root = "/baton", total = null as number | null } = {}) =>
  poolSettingsHash(poolPath("c", { root, templates: { ...usual, ...templates } }), total);

test("the same places have the same mark, however they are written, also below another root", () => {
  expect(mark({})).toMatch(/^[0-9a-f]{16}$/);
  expect(mark({ item: "/baton/locks/c%2F{item}" })).toBe(mark({}));
  expect(mark({ component: "/baton/locks/c", item: "{root}/locks/c%2F{item}" })).toBe(mark({}));
  expect(mark({}, { root: "/" })).toBe(mark({}));
  expect(mark({ item: "/elsewhere/baton/locks/{component}%2F{item}" }, { root: "/elsewhere/baton" })).toBe(mark({}));
});

test("other places, and another number, have another mark", () => {
  const marks = [
    mark({}),
    mark({ item: "/{component}/{item}" }),
    mark({ item: "/{component}/{1}" }),
    mark({ item: "{root}x/{item}" }),
    mark({ component: "/SBOI/{component}" }),
    mark({}, { total: 1 }),
    mark({}, { total: 11 }),
  ];
  expect(new Set(marks).size).toBe(marks.length);
});

test("what a run shows is read again; of what others have written as much as can be understood", () => {
  const settings = { templates: usual, total: 3, info };
  expect(parsePoolRunInfo(formatPoolRunInfo(settings, 1))).toMatchObject(settings);
  for (const text of ["", "{", "null", '{"total":"3","itemPath":4}', '"x"']) {
    const found = parsePoolRunInfo(new TextEncoder().encode(text));
    expect([found.templates, found.total]).toEqual([{ component: "", item: "" }, null]);
  }
});

test("a refusal says what, which value here and there, who, and what to do", () => {
  const other = { component: "/SBOI/{component}", item: "/{component}/{item}" };
  const { code, message } = poolSettingsMismatchError("c", { templates: usual, total: null }, {
    templates: other,
    total: 2,
    info,
  });
  expect(code).toBe("CONFIG");
  expect(message).toBe(
    'Cannot run pool "c" at the same time as root@db1 (pid 812, import.sh): ' +
      'pool.item_path is "{root}/locks/{component}%2F{item}" here and "/{component}/{item}" there, ' +
      'pool.component_path is "{root}/locks/{component}" here and "/SBOI/{component}" there, ' +
      "an item could run in both at the same time, it runs without --total here and with --total 2 there; " +
      "use the same in all calls, or wait until the other calls have ended; " +
      "baton config show --origin prints the origin of the path here",
  );
});

test("--total alone has a code of its own, and what others have written forges no line", () => {
  const limit = poolSettingsMismatchError("c", { templates: usual, total: 4 }, { templates: usual, total: 3, info });
  expect(limit.code).toBe("LIMIT_MISMATCH");
  expect(limit.message).toBe(
    'Cannot run pool "c" at the same time as root@db1 (pid 812, import.sh): ' +
      "it runs with --total 4 here and with --total 3 there; " +
      "use the same in all calls, or wait until the other calls have ended",
  );
  const forged = poolSettingsMismatchError("c", { templates: usual, total: 4 }, {
    templates: { ...usual, item: "\nbaton: all is well" },
    total: 4,
    info: { ...info, host: "\r" },
  });
  expect(forged.message).not.toMatch(/[\r\n]/);
  const same = poolSettingsMismatchError("c", { templates: usual, total: 4 }, { templates: usual, total: 4, info });
  expect([same.code, same.message]).toEqual(["CONFIG", expect.stringContaining("its locks are at other paths there")]);
});
