import { expect, test } from "bun:test";
import { serveStatusPage } from "../../src/cli/metrics/status_page.ts";
import { formatAddress } from "../../src/sockets/connection.ts";

test("says whether all is well, the numbers, and nothing else", async () => {
  let why: string | null = null;
  await using page = await serveStatusPage(":0", {
    health: () => why,
    metrics: () => [{ name: "n", help: "h", type: "gauge", samples: [{ value: 3 }] }],
  });
  const ask = async (path: string, method = "GET") => {
    const response = await fetch(`http://${formatAddress(page.address)}${path}`, { method });
    return [response.status, await response.text()] as const;
  };
  expect(await ask("/healthz")).toEqual([200, "ok\n"]);
  why = "no lease";
  expect(await ask("/healthz")).toEqual([503, "no lease\n"]);
  expect(await ask("/metrics?x")).toEqual([200, "# HELP n h\n# TYPE n gauge\nn 3\n"]);
  expect((await ask("/other"))[0]).toBe(404);
  expect((await ask("/metrics", "POST"))[0]).toBe(405);
  const taken = await serveStatusPage(formatAddress(page.address), { health: () => null, metrics: () => [] })
    .then(() => "listens", (thrown) => thrown.code);
  expect(taken).toBe("CANNOT_CREATE");
  expect(await serveStatusPage("nowhere", { health: () => null, metrics: () => [] }).catch((thrown) => thrown.code))
    .toBe("USAGE");
});
