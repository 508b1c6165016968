/** Opens the sources of all products, and reads their rows (locks, topics, processes …). */
import type { SettingTable } from "../../src/base/config/setting.ts";
import type { RowKind, RowSnapshot } from "../../src/base/rows/row_kinds.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { Product, ProductView, ProductViewCall, RowRequest, RowSource } from "../product.ts";
import { metricsAddressSettings, openProcessRows } from "./process_rows.ts";

export function loadViews(products: readonly Product[]): Promise<readonly ProductView[]> {
  return Promise.all(products.map((product) => product.view()));
}

/** Returns the options with which a user names the objects to read, such as --store. */
export function rowSourceSettings(views: readonly ProductView[]): SettingTable & typeof metricsAddressSettings {
  return Object.assign({ ...metricsAddressSettings }, ...views.map(({ settings }) => settings));
}

/**
 * An open source of rows, with the kinds of its rows and the view that opened it. The view is null for rows of
 * processes.
 */
export interface OpenRowSource {
  readonly kinds: readonly RowKind[];
  readonly source: RowSource;
  readonly view: ProductView | null;
}

export type RowSourcesCall = ProductViewCall<typeof metricsAddressSettings>;

export class RowSources implements AsyncDisposable {
  readonly all: readonly OpenRowSource[];

  private constructor(all: readonly OpenRowSource[]) {
    this.all = all;
  }

  /** Opens the sources that have rows of the `wanted` kinds. Rejects with USAGE or CONFIG for invalid settings. */
  static async open(
    views: readonly ProductView[],
    call: RowSourcesCall,
    wanted: readonly RowKind[],
  ): Promise<RowSources> {
    const opened: OpenRowSource[] = [];
    try {
      for (const view of views) {
        const { kinds } = view;
        if (kinds.some((kind) => wanted.includes(kind))) opened.push({ kinds, view, source: await view.open(call) });
      }
      const processes: OpenRowSource = {
        kinds: ["process"],
        view: null,
        source: openProcessRows(call, views),
      };
      return new RowSources(wanted.includes("process") ? [...opened, processes] : opened);
    } catch (thrown) {
      await new RowSources(opened)[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** Reads the rows of all sources. Rejects if the coordination service fails. */
  read(zk: ZooKeeper, request: RowRequest): Promise<RowSnapshot> {
    return this.readFrom(this.all, zk, request);
  }

  /** Reads the rows of some sources. Rejects if the coordination service fails. */
  async readFrom(sources: readonly OpenRowSource[], zk: ZooKeeper, request: RowRequest): Promise<RowSnapshot> {
    const readings = await Promise.all(sources.map(({ source }) => source.read(zk, request)));
    const { details, empty } = Object.assign({}, ...readings) as RowSnapshot;
    return {
      rows: Object.assign({}, ...readings.map(({ rows }) => rows)),
      unused: readings.reduce((sum, { unused = 0 }) => sum + unused, 0),
      problems: readings.flatMap(({ problems = [] }) => problems),
      ...(details === undefined ? {} : { details }),
      ...(empty === undefined ? {} : { empty }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { source } of this.all) await source[Symbol.asyncDispose]();
  }
}
