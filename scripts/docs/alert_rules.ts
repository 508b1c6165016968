/** The alert rules of docs/examples/prometheus_rules.yml. */

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly severity: "warning" | "critical";
  readonly summary: string;
}

export const alertRules: readonly AlertRule[] = [
  {
    alert: "BatonBlind",
    expr: "baton_up == 0 or absent(baton_up)",
    for: "2m",
    severity: "critical",
    summary: "baton metrics does not run, or cannot read the coordination service: the other alerts see nothing",
  },
  {
    alert: "TickOverdue",
    expr: "baton_tick_overdue == 1",
    for: "5m",
    severity: "critical",
    summary: "No host has begun the tick of {{ $labels.schedule }} of {{ $labels.name }}",
  },
  {
    alert: "TickFailed",
    expr: 'increase(baton_lock_ends_total{result=~"failed|lost|missed"}[1h]) > 0 ' +
      "and on (name) baton_tick_settled_timestamp_seconds",
    severity: "warning",
    summary: "A tick of {{ $labels.name }} is {{ $labels.result }}",
  },
  {
    alert: "LockHeldLong",
    expr: "min_over_time(baton_lock_holders[6h]) > 0 and max_over_time(baton_lock_waiters[30m]) > 0",
    for: "10m",
    severity: "warning",
    summary: "{{ $labels.name }} has been held for 6 h, and others wait",
  },
  {
    alert: "LockLost",
    expr: 'increase(baton_lock_ends_total{result="lost"}[1h]) > 0',
    severity: "warning",
    summary: "A holder of {{ $labels.name }} has lost its session: the outcome of its command is unknown",
  },
  {
    alert: "JobFailed",
    expr:
      'increase(baton_lock_ends_total{result="failed"}[1h]) > 0 unless on (name) baton_tick_settled_timestamp_seconds',
    severity: "warning",
    summary: "A command under the lock {{ $labels.name }} failed",
  },
  {
    alert: "ClockOffset",
    expr: "abs(baton_clock_offset_seconds) > 5",
    for: "5m",
    severity: "warning",
    summary: "The clocks of the servers and of this machine differ by {{ $value }} s: beyond --skew no ticks run",
  },
  {
    alert: "NoLeader",
    expr: "baton_election_leaders == 0 and baton_election_candidates > 0",
    for: "2m",
    severity: "critical",
    summary: "The election {{ $labels.name }} has candidates and no leader",
  },
];

export function alertRulesFile(rules: readonly AlertRule[]): string {
  const lines = rules.flatMap(({ alert, expr, for: time, severity, summary }) => [
    `      - alert: ${alert}`,
    `        expr: ${quoted(expr)}`,
    ...(time === undefined ? [] : [`        for: ${time}`]),
    `        labels: { severity: ${severity} }`,
    "        annotations:",
    `          summary: ${quoted(summary)}`,
  ]);
  return [
    "# Alerts for `baton metrics`. Change the times to those of your jobs.",
    "groups:",
    "  - name: baton",
    "    rules:",
  ]
    .concat(lines).join("\n") + "\n";
}

/** Quotes a YAML text with single quotation marks, the only character that needs escaping there. */
const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
