/**
 * The client's side of CURVE's handshake (RFC 26): it sends HELLO and INITIATE. The client knows the server's key in
 * advance, and proves that it owns its own key.
 */
import type { X25519Secret } from "../../../base/support/x25519.ts";
import { encodeZ85 } from "../../../base/wire/z85.ts";
import { encodeZmtpCommand, type ZmtpCommand, zmtpErrorReason } from "./zmtp_command.ts";
import {
  newTransientCurveKey,
  type RandomBytes,
  requireCurveBoxKey,
  unexpectedCurveCommandError,
  unopenedCurveBoxError,
} from "./curve_agreement.ts";
import { openCurveBox, sealCurveBox } from "./curve_box.ts";
import {
  curveBoxLayouts,
  curveCommandLayouts,
  curveHelloPadding,
  curveHelloSignature,
  curveLongNonceBoxLayout,
  curveVersion,
} from "./curve_layout.ts";
import { CurveNonceCounter, CurveNonceOrderCheck } from "./curve_nonce.ts";
import { CurveTrafficCipher } from "./curve_traffic.ts";
import {
  continuedHandshakeStep,
  failedHandshakeStep,
  type SecurityMechanism,
  type SecurityMechanismContext,
  type SecurityMechanismFactory,
  type ZmtpHandshakeStep,
} from "./security_mechanism.ts";
import { decodeZmtpMetadata } from "./zmtp_metadata.ts";
import { ZmtpError } from "./zmtp_error.ts";

export interface CurveClientOptions {
  readonly key: X25519Secret;
  /** The server's long-term public key, 32 bytes. */
  readonly serverKey: Uint8Array;
  readonly randomBytes: RandomBytes;
}

/** Meanings of the status codes of a refusal. RFC 27, "Message Format". */
const refusals: Readonly<Record<string, string>> = {
  300: "the server does not accept it for now (300)",
  400: "the server does not know this key, or does not accept it (400)",
  500: "the server could not check it (500)",
};

/** Makes the security mechanism for a client. Throws ZmtpError for an invalid server key. */
export function curveClientMechanism(options: CurveClientOptions): SecurityMechanismFactory {
  requireCurveBoxKey(options.key, options.serverKey).fill(0);
  return { name: "CURVE", asServer: false, create: (context) => new CurveClient(options, context) };
}

class CurveClient implements SecurityMechanism {
  readonly #options: CurveClientOptions;
  readonly #context: SecurityMechanismContext;
  readonly #transient: X25519Secret;
  readonly #sent = new CurveNonceCounter();
  readonly #received = new CurveNonceOrderCheck();
  #awaits: "WELCOME" | "READY" | null = null;
  /**
   * The key of the boxes: first made from the client's transient key and the server's long-term key, later from both
   * transient keys.
   */
  #key: Uint8Array | null = null;
  #traffic: CurveTrafficCipher | null = null;

  constructor(options: CurveClientOptions, context: SecurityMechanismContext) {
    this.#options = options;
    this.#context = context;
    this.#transient = newTransientCurveKey(options.randomBytes);
  }

  get traffic(): CurveTrafficCipher | null {
    return this.#traffic;
  }

  start(): readonly Uint8Array[] {
    this.#key = requireCurveBoxKey(this.#transient, this.#options.serverKey);
    this.#awaits = "WELCOME";
    const nonce = this.#sent.takeNext();
    const hello = curveCommandLayouts.HELLO.write({
      version: curveVersion,
      padding: curveHelloPadding,
      clientTransientKey: this.#transient.publicKey,
      nonce,
      box: sealCurveBox(this.#key, { prefix: "CurveZMQHELLO---", rest: nonce }, curveHelloSignature),
    });
    return [encodeZmtpCommand("HELLO", hello)];
  }

  receive({ name, data }: ZmtpCommand): ZmtpHandshakeStep {
    const key = this.#key;
    const awaits = this.#awaits;
    this.#awaits = null;
    if (key === null || awaits === null) throw unexpectedCurveCommandError(name, "the handshake is over");
    if (name === "ERROR") return failedHandshakeStep(this.#refusalError(data));
    if (name !== awaits) throw unexpectedCurveCommandError(name, `${awaits} is to come`);
    return name === "WELCOME" ? this.#handleWelcome(data, key) : this.#handleReady(data, key);
  }

  destroy(): void {
    this.#awaits = null;
    this.#key?.fill(0);
    this.#key = null;
    this.#traffic?.destroy();
  }

  #handleWelcome(data: Uint8Array, key: Uint8Array): ZmtpHandshakeStep {
    const { nonce, box } = curveCommandLayouts.WELCOME.read(data);
    const plain = openCurveBox(key, { prefix: "WELCOME-", rest: nonce }, box);
    key.fill(0);
    if (plain === null) throw unopenedCurveBoxError("WELCOME", "the server has another key than the one expected");
    const { serverTransientKey, cookie } = curveBoxLayouts.WELCOME.read(plain);
    const vouchKey = requireCurveBoxKey(this.#options.key, serverTransientKey);
    const transientKey = requireCurveBoxKey(this.#transient, serverTransientKey);
    this.#key = transientKey;
    this.#awaits = "READY";
    const vouchNonce = this.#options.randomBytes(16);
    const vouch = curveLongNonceBoxLayout.write({
      nonce: vouchNonce,
      box: sealCurveBox(
        vouchKey,
        { prefix: "VOUCH---", rest: vouchNonce },
        curveBoxLayouts.vouch.write({
          clientTransientKey: this.#transient.publicKey,
          serverKey: this.#options.serverKey,
        }),
      ),
    });
    vouchKey.fill(0);
    const clientKey = this.#options.key.publicKey;
    const inside = curveBoxLayouts.INITIATE.write({ clientKey, vouch, metadata: this.#context.ownMetadata });
    const initiateNonce = this.#sent.takeNext();
    const initiate = curveCommandLayouts.INITIATE.write({
      cookie,
      nonce: initiateNonce,
      box: sealCurveBox(transientKey, { prefix: "CurveZMQINITIATE", rest: initiateNonce }, inside),
    });
    return continuedHandshakeStep(encodeZmtpCommand("INITIATE", initiate));
  }

  #handleReady(data: Uint8Array, key: Uint8Array): ZmtpHandshakeStep {
    const { nonce, box } = curveCommandLayouts.READY.read(data);
    const plain = openCurveBox(key, { prefix: "CurveZMQREADY---", rest: nonce }, box);
    if (plain === null) throw unopenedCurveBoxError("READY", "it was changed, or belongs to another connection");
    this.#received.accept(nonce);
    const properties = decodeZmtpMetadata(plain);
    const error = this.#context.acceptProperties(properties, "");
    if (error !== null) return failedHandshakeStep(error); // RFC 26: a client never sends an ERROR
    this.#traffic = new CurveTrafficCipher({ side: "client", key, sent: this.#sent, received: this.#received });
    key.fill(0);
    return { send: [], outcome: { kind: "done", properties, userId: "" } };
  }

  #refusalError(data: Uint8Array): ZmtpError {
    const reason = zmtpErrorReason(data);
    const own = encodeZ85(this.#options.key.publicKey);
    const why = refusals[reason] ?? `the server says "${reason}"`;
    return new ZmtpError("REFUSED_BY_PEER", `The client with the public key ${own} was refused: ${why}`);
  }
}
