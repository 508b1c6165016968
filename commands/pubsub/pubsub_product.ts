/** Defines the product publish/subscribe: topics, proxies and servers. */
import type { Product } from "../product.ts";

export const pubsubProduct: Product = {
  name: "pubsub",
  commands: {
    publish: async () => (await import("./publish.ts")).publishCommand,
    subscribe: async () => (await import("./subscribe.ts")).subscribeCommand,
    "pubsub serve": async () => (await import("./local_service.ts")).pubsubServeCommand,
    "pubsub server": async () => (await import("./server.ts")).pubsubServerCommand,
    "pubsub topic": async () => (await import("./topic.ts")).pubsubTopicCommand,
    "pubsub proxy": async () => (await import("./proxy.ts")).pubsubProxyCommand,
    "pubsub client": async () => (await import("./client.ts")).pubsubClientCommand,
    "pubsub keygen": async () => (await import("./keygen.ts")).keygenCommand,
  },
  settings: async () => (await import("../../src/pubsub/settings/pubsub_settings.ts")).pubsubTables,
  checks: async () => (await import("./pubsub_checks.ts")).pubsubChecks,
  completions: async () => (await import("./pubsub_completions.ts")).pubsubCompletions,
  help: async () => (await import("./pubsub_help.ts")).pubsubHelp,
  doctor: async () => (await import("./pubsub_doctor.ts")).pubsubDoctor,
  view: async () => (await import("./pubsub_view.ts")).pubsubView,
};
