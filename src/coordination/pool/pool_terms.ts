/**
 * The terms of a run: what all runs of a component have to agree on, or an item could run twice at once, or more items than
 * `--total` says. Texts and data; who shows them, and who looks at them, is pool_presence.ts.
 */
import { BatonError } from "../../errors.ts";
import { jsonFields, textOf } from "../../support/json_fields.ts";
import { printable } from "../../support/text.ts";
import { type HolderInfo, nameOfHolder, parseNodeInfo } from "../holder_info.ts";
import type { PoolPath, PoolTemplates } from "./pool_path.ts";

export interface PoolTerms {
  /** As the configuration has them, for people. */
  readonly templates: PoolTemplates;
  /** Null for as many as there are. */
  readonly total: number | null;
}

/** What the node of a run says: its terms, and who it is. */
export interface AnnouncedTerms extends PoolTerms {
  readonly info: HolderInfo;
}

const utf8 = new TextEncoder();

/** The same for all who lock the same places and count alike: how a template is written does not matter. */
export function termsHash({ places }: Pick<PoolPath, "places">, total: number | null): string {
  return fingerprint(JSON.stringify([places.component, places.item, total]));
}

/** `sinceMs` is Unix milliseconds, for people. */
export function formatTerms({ templates, total, info }: AnnouncedTerms, sinceMs: number): Uint8Array {
  const { component, item } = templates;
  return utf8.encode(JSON.stringify({ ...info, sinceMs, componentPath: component, itemPath: item, total }));
}

/** What can be understood of `data`. Never throws: that these are other terms is known by then. */
export function parseTerms(data: Uint8Array): AnnouncedTerms {
  const { componentPath, itemPath, total } = jsonFields(data);
  return {
    templates: { component: textOf(componentPath), item: textOf(itemPath) },
    total: typeof total === "number" ? total : null,
    info: parseNodeInfo(data),
  };
}

/** LIMIT_MISMATCH where it is --total alone, else CONFIG. */
export function termsMismatch(component: string, own: PoolTerms, shown: AnnouncedTerms): BatonError {
  const paths = differingPaths(own.templates, shown.templates);
  const isTotal = own.total !== shown.total;
  const isPlace = paths.length > 0 || !isTotal;
  const differences = [
    ...paths,
    ...(paths.length === 0 && !isTotal ? ["its locks are in another place of the tree there"] : []),
    ...(isPlace ? ["an item could run in both at once"] : []),
    ...(isTotal ? [`it is run ${totalOf(own)} here and ${totalOf(shown)} there`] : []),
  ];
  const message =
    `Cannot run "${component}" beside ${nameOfHolder(shown.info)}: ${printable(differences.join(", "))}; ` +
    `all calls need the same, another one has to wait until none of the others runs${isPlace ? whereFrom : ""}`;
  return new BatonError(isPlace ? "CONFIG" : "LIMIT_MISMATCH", message);
}

/** What differs in the text, for a message. */
export function differingPaths(own: PoolTemplates, shown: PoolTemplates): readonly string[] {
  return (["item", "component"] as const)
    .filter((which) => own[which] !== shown[which])
    .map((which) => `pool.${which}_path is "${own[which]}" here and "${shown[which]}" there`);
}

const whereFrom = ". baton config show --origin says where the path here comes from";

const totalOf = ({ total }: PoolTerms): string => (total === null ? "without --total" : `with --total ${total}`);

const prime = 0x100000001b3n;
const offset = 0xcbf29ce484222325n;

/** FNV-1a of the UTF-8, as 16 hexadecimal digits. Not safe against forgery; node:crypto costs 3 ms of a start. */
function fingerprint(text: string): string {
  let hash = offset;
  for (const byte of utf8.encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * prime);
  return hash.toString(16).padStart(16, "0");
}
