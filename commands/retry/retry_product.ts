/** Defines the product "retry", which stores messages and tries them again. */
import type { Product } from "../product.ts";

export const retryProduct: Product = {
  name: "retry",
  commands: {
    "retry-processor call": async () => (await import("./call.ts")).retryCallCommand,
    "retry-processor submit": async () => (await import("./submit.ts")).retrySubmitCommand,
    "retry-processor run": async () => (await import("./run.ts")).retryRunCommand,
    "retry-processor serve": async () => (await import("./serve.ts")).retryServeCommand,
    "retry-processor ls": async () => (await import("./inspect.ts")).retryLsCommand,
    "retry-processor show": async () => (await import("./inspect.ts")).retryShowCommand,
    "retry-processor retry": async () => (await import("./control.ts")).retryRetryCommand,
    "retry-processor cancel": async () => (await import("./control.ts")).retryCancelCommand,
    "retry-processor pause": async () => (await import("./control.ts")).retryPauseCommand,
    "retry-processor resume": async () => (await import("./control.ts")).retryResumeCommand,
    "retry-processor dlq": async () => (await import("./dlq.ts")).retryDlqCommand,
    "retry-processor stats": async () => (await import("./inspect.ts")).retryStatsCommand,
    "retry-processor verify": async () => (await import("./inspect.ts")).retryVerifyCommand,
    "retry-processor explain": async () => (await import("./explain.ts")).retryExplainCommand,
  },
  settings: async () => (await import("../../src/retry/settings/retry_settings.ts")).retryTables,
  checks: async () => (await import("./retry_checks.ts")).retryChecks,
  help: async () => (await import("./retry_help.ts")).retryHelp,
  doctor: async () => (await import("./retry_doctor.ts")).retryDoctor,
  view: async () => (await import("./retry_view.ts")).retryView,
};
