import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { alertRules } from "../../../../scripts/docs/alert_rules.ts";
import { dashboardFile, dashboardPanels, dashboardRows } from "../../../../scripts/docs/dashboard.ts";
import { exportedMetrics, findExpressionMistakes } from "../../../../scripts/docs/exported_metrics.ts";
import { describeWithPeer } from "../../../support/peers.ts";

const metrics = exportedMetrics();
const panels = dashboardPanels(dashboardRows);
const expressions = [...alertRules, ...panels.flatMap(({ targets = [] }) => targets)].map(({ expr }) => expr);

test("each metric and label in a rule or a panel is exported, and a wrong one is found", () => {
  expect(expressions.flatMap((expr) => findExpressionMistakes(expr, metrics))).toEqual([]);
  expect(
    findExpressionMistakes(
      'rate(baton_lock_wait_seconds{host="x"}[5m]) + baton_lock_hold_seconds_sum{host!="x"}',
      metrics,
    ),
  )
    .toEqual([
      "baton_lock_wait_seconds is not exported",
      "baton_lock_hold_seconds_sum has no label host",
    ]);
});

test("each label in a legend or a summary is one of the metrics of its expression", () => {
  const texts = [
    ...alertRules.map(({ expr, summary }) => [expr, summary] as const),
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr, legendFormat }) => [expr, legendFormat] as const)),
  ];
  const unknown = texts.flatMap(([expr, text]) => {
    const used = metrics.filter(({ name }) => expr.includes(name)).flatMap(({ labels }) => labels);
    const named = [...text.matchAll(/\{\{ ?(?:\$labels\.)?(\w+) ?\}\}/g)].map(([, label = ""]) => label);
    return named.filter((label) => !used.includes(label)).map((label) => `${label} in ${text}`);
  });
  expect(unknown).toEqual([]);
});

test("the alerts of an operator are all there, each name once", () => {
  const names = alertRules.map(({ alert }) => alert);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(
    expect.arrayContaining(["TickOverdue", "TickFailed", "LockHeldLong", "LockLost", "ClockOffset", "BatonBlind"]),
  );
});

test("panels have unique ids, stay within 24 columns, and do not overlap", () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, cell) => `${x + cell % w},${y + Math.floor(cell / w)}`)
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
});

test("the dashboard asks for its data source when it is imported", () => {
  const { __inputs: inputs, panels } = JSON.parse(dashboardFile());
  expect(inputs[0]).toMatchObject({ name: "DS_PROMETHEUS", type: "datasource", pluginId: "prometheus" });
  for (const { targets = [] } of panels) {
    for (const { datasource } of targets) expect(datasource.uid).toBe("${DS_PROMETHEUS}");
  }
});

describeWithPeer("promtool", "promtool", () => {
  test("accepts the rules", () => {
    const rules = join(import.meta.dirname, "../../../../docs/examples/prometheus_rules.yml");
    const { status, stdout, stderr } = spawnSync("promtool", ["check", "rules", rules], { encoding: "utf8" });
    expect({ status, text: stdout + stderr }).toMatchObject({ status: 0 });
    expect(stdout).toContain(`${alertRules.length} rules found`);
  });
});
