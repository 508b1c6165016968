/**
 * The ROUTER socket of ZeroMQ. The first frame of each received or sent message is the identity of the peer. RFC 28.
 */
import { BatonError } from "../../base/errors.ts";
import { totalByteLength } from "../../base/wire/bytes.ts";
import { zmtpPropertyBytes, zmtpPropertyNames } from "./zmtp/zmtp_metadata.ts";
import type { ZeroMqSocketType } from "./zmtp/socket_type.ts";
import { ZmtpError } from "./zmtp/zmtp_error.ts";
import type { ZmtpPeerDescription } from "./zmtp/zmtp_peer.ts";
import type { ZeroMqPeer } from "./zeromq_peer.ts";
import type { ZeroMqPeerCandidate } from "./zeromq_link.ts";
import { ZeroMqSocket } from "./zeromq_socket.ts";

export class RouterSocket extends ZeroMqSocket {
  readonly type: ZeroMqSocketType = "ROUTER";
  readonly #byKey = new Map<string, ZeroMqPeer>();
  readonly #frames = new IdentityFrames();
  #nextNumber = Math.floor(Math.random() * 2 ** 32);

  /** Returns the description of the peer with this identity; null if no such peer is connected. */
  peer(identity: Uint8Array): ZmtpPeerDescription | null {
    return this.#find(identity)?.description ?? null;
  }

  /** The identities of all peers to which messages can be sent. */
  get identities(): Uint8Array[] {
    return [...this.#byKey.values()].map(({ identity }) => identity.slice());
  }

  /** Checks the frames after the identity, because the identity is not sent. */
  protected override check(frames: readonly Uint8Array[]): void {
    const [identity] = frames;
    if (identity !== undefined && frames.length > 1) {
      return this.checkLimits(frames.length - 1, totalByteLength(frames) - identity.byteLength);
    }
    const message = "Cannot send fewer than 2 frames through a ROUTER: the first frame is the peer's identity";
    throw new BatonError("BAD_DATA", message);
  }

  protected override offer(frames: readonly Uint8Array[]): boolean {
    const peer = this.#targetOf(frames);
    if (peer === null) return true;
    return peer.senders.length === 0 && peer.offer(frames.slice(1));
  }

  protected override async waitToOffer(
    frames: readonly Uint8Array[],
    signal?: AbortSignal,
  ): Promise<void> {
    for (;;) {
      const peer = this.#targetOf(frames);
      if (peer === null || (peer.senders.length === 0 && peer.offer(frames.slice(1)))) return;
      const isTaken = await peer.senders.wait(() => {
        // The identity may belong to another peer by now, or to no peer, so it is looked up again.
        if (this.#find(frames[0] as Uint8Array) !== peer) return false;
        return peer.offer(frames.slice(1)) || undefined;
      }, signal);
      if (isTaken) return;
    }
  }

  protected override failSenders(reason: unknown): void {
    for (const peer of this.#byKey.values()) peer.senders.fail(reason);
  }

  override acceptPeer({ peer, properties, userId }: ZeroMqPeerCandidate): ZmtpError | null {
    const told = zmtpPropertyBytes(properties, zmtpPropertyNames.identity);
    if (told?.[0] === 0) {
      return new ZmtpError("PROPERTIES", "The peer's identity begins with a zero byte, as only a ROUTER may choose it");
    }
    const identity = told !== undefined && told.byteLength > 0 ? told : generatedIdentityOf(peer);
    return this.#refusal({ peer, key: identity === null ? "" : keyOf(identity), userId });
  }

  override onPeerReady(peer: ZeroMqPeer, { identity: told, userId }: ZmtpPeerDescription): Uint8Array {
    const identity = told.byteLength > 0 ? told.slice() : generatedIdentityOf(peer) ?? this.#newIdentity();
    const key = keyOf(identity);
    const refusal = this.#refusal({ peer, key, userId });
    if (refusal !== null) throw refusal;
    const before = this.#byKey.get(key);
    const unread = this.#unreadPeerNamed(key, peer);
    this.#forget(peer);
    const isAnother = key !== peer.key || (peer.description ?? { userId }).userId !== userId;
    // Another peer now answers at this endpoint. Waiting messages were for the earlier peer, so they are dropped.
    if (isAnother) this.counters.dropped += peer.dropOutbox();
    peer.identity = identity;
    peer.key = key;
    if (before !== undefined && before !== peer) {
      // The new peer takes over the identity. The old connection and its waiting messages are dropped, as in libzmq.
      this.#forget(before);
      before.senders.pump();
      this.connections.evict(before);
    }
    if (unread !== undefined) {
      peer.inherit(unread);
      this.inbound.replace(unread, peer);
    }
    this.#byKey.set(peer.key, peer);
    return this.#frames.issueFrame(peer);
  }

  protected override take(): Uint8Array[] | undefined {
    const message = super.take();
    if (message !== undefined) this.#frames.repairFrame(message, this.inbound.last);
    return message;
  }

  /**
   * Forgets a peer. Not called while the peer of a `connect` is down: that peer keeps its identity, and its messages
   * wait (RFC 28).
   */
  override onPeerRemoved(peer: ZeroMqPeer): void {
    this.#forget(peer);
    peer.senders.pump();
  }

  override onRoom(peer: ZeroMqPeer): void {
    if (peer.senders.length > 0) peer.senders.pump();
  }

  /**
   * Returns the reason why this peer cannot have the identity `key` now; null if it can. `peer` is null for a new peer.
   */
  #refusal({ peer, key, userId }: {
    readonly peer: ZeroMqPeer | null;
    readonly key: string;
    readonly userId: string;
  }): ZmtpError | null {
    const before = this.#byKey.get(key);
    const own = peer !== null && peer.length > 0 ? peer : undefined;
    const unread = this.#unreadPeerNamed(key, peer);
    // Refuses the identity, because messages of one user could otherwise appear to come from another user, and
    // responses could go to the wrong user.
    for (const other of [before === peer ? undefined : before, own, unread]) {
      if (other === undefined || other.description?.userId === userId) continue;
      return new ZmtpError("IDENTITY_TAKEN", "A peer of another user is known by the same identity");
    }
    if (own === undefined || unread === undefined) return null;
    const message = "Unread messages exist: of this peer under another identity, and of another peer under this one";
    return new ZmtpError("IDENTITY_TAKEN", message);
  }

  /** Returns another peer that had this identity earlier and has unread messages. */
  #unreadPeerNamed(key: string, peer: ZeroMqPeer | null): ZeroMqPeer | undefined {
    return this.inbound.find((other) => other.key === key && other !== peer);
  }

  /** Returns the peer for the message. If there is none, counts the message as dropped and returns null. */
  #targetOf(frames: readonly Uint8Array[]): ZeroMqPeer | null {
    const peer = this.#find(frames[0] as Uint8Array);
    if (peer !== undefined) return peer;
    this.counters.unroutable++;
    return null;
  }

  #find(identity: Uint8Array): ZeroMqPeer | undefined {
    return this.#frames.peerOf(identity) ?? this.#byKey.get(keyOf(identity));
  }

  #forget(peer: ZeroMqPeer): void {
    if (this.#byKey.get(peer.key) === peer) this.#byKey.delete(peer.key);
    this.#frames.revokeFrame(peer);
  }

  /**
   * Returns a new identity: a zero byte and a number of four bytes, as libzmq does. The first number is random; each
   * following number is one higher.
   */
  #newIdentity(): Uint8Array {
    const number = this.#nextNumber;
    this.#nextNumber = (number + 1) >>> 0;
    return new Uint8Array([0, number >>> 24, (number >>> 16) & 0xff, (number >>> 8) & 0xff, number & 0xff]);
  }
}

/** Returns the identity that this ROUTER has given to a peer without an identity of its own; otherwise null. */
function generatedIdentityOf(peer: ZeroMqPeer | null): Uint8Array | null {
  return peer !== null && peer.identity[0] === 0 ? peer.identity : null;
}

/** Returns the identity as the key of a map, with one character per byte. */
function keyOf(identity: Uint8Array): string {
  let key = "";
  for (let at = 0; at < identity.byteLength; at++) key += String.fromCharCode(identity[at] as number);
  return key;
}

/**
 * The identity frames that a ROUTER puts before messages for its program. All messages of a connection share one frame
 * object. A response usually starts with the frame object of its request, by which the peer is found ten times faster
 * than by the bytes. The program may change these frames, so they are verified before use.
 */
class IdentityFrames {
  /** The peers by their frames. This map is not weak, because a lookup in a weak map takes several times as long. */
  readonly #peers = new Map<Uint8Array, ZeroMqPeer>();
  /** The original bytes of all frames that still exist. */
  readonly #identities = new WeakMap<Uint8Array, Uint8Array>();

  /** Creates the frame for the messages of this peer. */
  issueFrame(peer: ZeroMqPeer): Uint8Array {
    this.revokeFrame(peer);
    const frame = peer.identity.slice();
    peer.frame = frame;
    this.#peers.set(frame, peer);
    this.#identities.set(frame, peer.identity);
    return frame;
  }

  /** Makes the frame of this peer invalid. Unread messages of the peer still contain the frame. */
  revokeFrame(peer: ZeroMqPeer): void {
    if (peer.frame !== null) this.#peers.delete(peer.frame);
    peer.frame = null;
  }

  /**
   * Returns the peer of this frame object. Returns undefined if the frame is not from this ROUTER, was changed, or is
   * outdated.
   */
  peerOf(frame: Uint8Array): ZeroMqPeer | undefined {
    const peer = this.#peers.get(frame);
    return peer !== undefined && isSame(frame, peer.identity) ? peer : undefined;
  }

  /** Repairs the first frame of a message from this peer if the program has changed the shared frame object. */
  repairFrame(message: Uint8Array[], peer: ZeroMqPeer | null): void {
    const frame = message[0] as Uint8Array;
    // A message of an earlier connection starts with the frame of that connection.
    const identity = peer !== null && frame === peer.frame ? peer.identity : this.#identities.get(frame);
    if (identity !== undefined && !isSame(frame, identity)) message[0] = identity.slice();
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  const { byteLength } = one;
  if (byteLength !== other.byteLength) return false;
  for (let at = 0; at < byteLength; at++) if (one[at] !== other[at]) return false;
  return true;
}
