/** `baton ui`: serves a page that shows everything in use, for a browser. */
import { BatonError } from "../../src/base/errors.ts";
import { type Command, defineCommand } from "../command.ts";
import type { Product } from "../product.ts";
import { loadViews } from "./row_sources.ts";
import { uiSettings } from "./ui_options.ts";

export async function uiCommandFor(products: readonly Product[]): Promise<Command> {
  const views = await loadViews(products);
  return defineCommand({
    name: "ui",
    summary: "serve a page of everything in use, for a browser",
    usage: "[options]",
    details: [
      "Prints a link, and serves the page until it is stopped: locks with their holders and queues, elections, " +
      "barriers, pools, ticks, topics, message stores and servers, as they change. The page needs nothing from other " +
      "hosts. It changes nothing, unless --allow-actions is given: then it prints a second link, whose page can " +
      "break locks, ask leaders to step down, redrive and drop dead letters, drain servers and move topics. Each " +
      "action is written to the log.",
      "The link has a token, without which no data is sent: other users of this machine reach the address, too. For " +
      "a browser on another machine use ssh -L 8610:127.0.0.1:8610 HOST, or serve TLS with --listen-cert, " +
      "--listen-key and --token-file.",
    ],
    examples: [
      ["baton ui", "the page of this user's keeper"],
      ["baton ui --allow-actions", "a second link, for a page with actions"],
      ["baton ui --servers zk1:2181,zk2:2181,zk3:2181 --listen :9000", "of an ensemble, on another port"],
      [
        "baton ui --listen 0.0.0.0:8610 --host-name ops --listen-cert c.pem --listen-key k.pem --token-file token",
        "for other machines",
      ],
    ],
    settings: uiSettings(views),
    runsNothing: true,
    isService: true,
    async run(call) {
      if (call.names.length > 0) {
        throw new BatonError("USAGE", `baton ui takes no names, not "${call.names.join(" ")}"`);
      }
      const { runUi } = await import("./run_ui.ts");
      return await runUi(call, views);
    },
  }) as Command;
}
