/**
 * Finds out whether a port uses TLS, after the port has closed a connection without a response. Loaded only in this
 * case.
 */
import type { Address, Connection, Dial } from "../../base/sockets/connection.ts";
import { systemErrorCode } from "../../base/sockets/describe_failure.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";

/**
 * Returns true if the port responds, without TLS, to `srvr`, one of ZooKeeper's four-letter commands. ZooKeeper
 * responds even if the command is not allowed.
 */
export async function portAnswersWithoutTls(address: Address, dial: Dial, signal: AbortSignal): Promise<boolean> {
  const answered = Promise.withResolvers<boolean>();
  using limit = new CleanupScope(onAbort(signal, () => answered.resolve(false)));
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
    return false; // the port no longer accepts connections
  }
}

/** Returns true if the port responds to a TLS handshake, even if it rejects the handshake. */
export async function portAnswersTls(address: Address, dial: Dial, signal: AbortSignal): Promise<boolean> {
  try {
    (await dial(address, { onData() {}, onClosed() {} }, { tls: {}, signal })).destroy();
    return true;
  } catch (error) {
    const code = systemErrorCode(error);
    return !signal.aborted && typeof code === "string" && /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|ALERT/.test(code);
  }
}
