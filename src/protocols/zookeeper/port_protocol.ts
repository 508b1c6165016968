/** Finds out whether a port uses TLS, when it has closed a connection without a response. Loaded only then. */
import type { Address, Connection, Dial } from "../../base/sockets/connection.ts";
import { systemErrorCode } from "../../base/sockets/describe_failure.ts";
import { onAbort, TaskScope } from "../../base/support/abort.ts";

/**
 * Returns whether the port responds to a four-letter word without TLS. ZooKeeper responds even to words that it does
 * not allow.
 */
export async function answersWithoutTls(address: Address, dial: Dial, signal: AbortSignal): Promise<boolean> {
  const answered = Promise.withResolvers<boolean>();
  using limit = new TaskScope(onAbort(signal, () => answered.resolve(false)));
  let connection: Connection | null = null;
  limit.add(() => connection?.destroy());
  try {
    connection = await dial(address, {
      onData: () => answered.resolve(true),
      onClosed: () => answered.resolve(false),
    }, { signal });
    connection.write(new TextEncoder().encode("srvr"));
    return await answered.promise;
  } catch {
    return false; // it no longer accepts connections
  }
}

/** Returns whether the port responds to a TLS handshake, even by rejecting it. */
export async function answersTls(address: Address, dial: Dial, signal: AbortSignal): Promise<boolean> {
  try {
    (await dial(address, { onData() {}, onClosed() {} }, { tls: {}, signal })).destroy();
    return true;
  } catch (error) {
    const code = systemErrorCode(error);
    return !signal.aborted && typeof code === "string" && /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|ALERT/.test(code);
  }
}
