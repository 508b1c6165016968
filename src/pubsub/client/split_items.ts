/**
 * Splits a stream of bytes into messages at a separator. Reads no files.
 */
import { BatonError } from "../../base/errors.ts";
import { bodyBytesMax } from "../wire/message_limits.ts";

/**
 * Yields the messages that are complete with each chunk. Throws BAD_DATA for a message over the limit. The bytes after
 * the last separator are the last message, unless `onUnfinished` takes them.
 */
export async function* splitInputIntoMessages(
  chunks: AsyncIterable<Uint8Array>,
  separator: number,
  onUnfinished?: (bytes: Uint8Array) => void,
): AsyncGenerator<Uint8Array[], void, void> {
  let open: Uint8Array[] = [];
  let openBytes = 0;
  let number = 1;
  const keep = (part: Uint8Array) => {
    if (part.byteLength === 0) return;
    open.push(part);
    openBytes += part.byteLength;
    if (openBytes > bodyBytesMax) {
      throw new BatonError("BAD_DATA", `Message ${number} is longer than ${bodyBytesMax} bytes, the limit`);
    }
  };
  const close = () => {
    const item = open.length === 1 ? open[0] as Uint8Array : Buffer.concat(open);
    open = [];
    openBytes = 0;
    number++;
    return item;
  };
  for await (const chunk of chunks) {
    const items: Uint8Array[] = [];
    let at = 0;
    for (let end = chunk.indexOf(separator); end >= 0; end = chunk.indexOf(separator, at)) {
      keep(chunk.subarray(at, end));
      items.push(close());
      at = end + 1;
    }
    keep(chunk.subarray(at));
    if (items.length > 0) yield items;
  }
  if (openBytes === 0) return;
  if (onUnfinished === undefined) yield [close()];
  else onUnfinished(close());
}
