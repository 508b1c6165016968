/** How much a heavy test does: what fits into a gate, or with BATON_DOSE=full what the documentation promises. */

export const isFullDose: boolean = process.env["BATON_DOSE"] === "full";

export function dose({ gate, full }: { readonly gate: number; readonly full: number }): number {
  return isFullDose ? full : gate;
}
