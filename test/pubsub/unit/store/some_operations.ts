/** Operations as the store's tests write them, and what they compare of the responses. */
import type { StoreResponse } from "../../../../src/pubsub/store/operations/store_operations.ts";
import type { Some } from "./engine_driver.ts";

export function bodies(...texts: string[]): Uint8Array[] {
  return texts.map((body) => new TextEncoder().encode(body));
}

export function put(counter: number, body: string, more: Some<"put"> = {}): Some<"put"> {
  return { kind: "put", counter, bodies: bodies(body), ...more };
}

export function get(last: number, more: Some<"get"> = {}): Some<"get"> {
  return { kind: "get", last, ...more };
}

export function codes(responses: readonly StoreResponse[]): string[] {
  return responses.map(({ code }) => code);
}

export function texts({ messages = [] }: StoreResponse): string[] {
  return messages.map(({ body }) => new TextDecoder().decode(body));
}
