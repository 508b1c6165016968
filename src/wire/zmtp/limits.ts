/** What a peer may make this side hold. Checked on what a frame claims, before anything is set aside for it. */
export interface ZmtpLimits {
  /** All frames of a message together, in bytes. */
  readonly messageBytesMax: number;
  /** Frames of a message. */
  readonly framesMax: number;
  /** The body of a command, in bytes: a handshake with its properties, a subscription. */
  readonly commandBytesMax: number;
}

export const zmtpLimitsDefault: ZmtpLimits = {
  // 64 MiB of a message's own and 64 KiB for what goes before it.
  messageBytesMax: (64 << 20) + (64 << 10),
  framesMax: 10_000,
  commandBytesMax: 64 << 10,
};
