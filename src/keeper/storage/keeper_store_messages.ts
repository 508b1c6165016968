/** What is said between the keeper and the thread of its store. */

export type StoreRequest =
  | { readonly kind: "open"; readonly dataDir: string }
  | { readonly kind: "load" }
  | { readonly kind: "confirm" }
  | { readonly kind: "commit"; readonly changes: Uint8Array }
  | { readonly kind: "close" };

export type StoreReply =
  /** One piece of what was loaded; `done` follows. */
  | { readonly kind: "piece"; readonly bytes: Uint8Array }
  | { readonly kind: "done" }
  | { readonly kind: "owned" }
  /** `isWhole`: the message is a sentence of its own, about data that must not be used as it is. */
  | { readonly kind: "failed"; readonly message: string; readonly isWhole?: boolean };
