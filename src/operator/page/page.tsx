/** Builds the page of `baton ui`: the bar, and the view that the URL names. */
import { computed, type Signal, signal, useComputed, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { countText, shownText, utcTimeText } from "../ui/shown_text.ts";
import { listAttentionItems } from "./attention.ts";
import { DataTable, rowFilterText, type TableColumn } from "./data_table.tsx";
import { KeyHelp, watchPageKeys } from "./page_keys.tsx";
import { ActionDialog } from "./action_dialog.tsx";
import {
  aboutProgram,
  type PageTable,
  pageTables,
  programNowMs,
  receivedStreamHello,
  rememberedBrowserChoice,
  streamFailureReason,
  streamState,
} from "./page_state.ts";
import { readPageToken, reconnectRowStream, storePageToken } from "./read_stream.ts";
import { type OpenRowKey, RowDialog } from "./row_details.tsx";
import { StateMark } from "./row_parts.tsx";
import * as views from "./views.tsx";

const view = signal<views.ViewName>("overview");
const openRow = signal<OpenRowKey | null>(null);
const theme = rememberedBrowserChoice("baton-theme", ["auto", "light", "dark"]);
const needsAttention = computed(listAttentionItems);

export function startPageView(): void {
  const show = () => {
    const name = location.hash.slice(1);
    view.value = views.viewNames.find((one) => one === name) ?? "overview";
    openRow.value = null;
    document.title = `baton: ${views.viewTitles[view.value]}`;
  };
  addEventListener("hashchange", show);
  show();
  watchPageKeys();
}

export function OperatorPage(): JSX.Element {
  useSignalEffect(() => void (document.documentElement.dataset["theme"] = theme.choice.value));
  return (
    <>
      <a class="skip" href="#main" onClick={skipToMain}>Skip to the rows</a>
      <Bar />
      <Navigation />
      <main id="main" tabIndex={-1}>
        <Connection />
        {streamState.value === "refused" ? <TokenForm /> : <View />}
      </main>
      <RowDialog open={openRow} />
      <ActionDialog />
      <KeyHelp />
      <Announcements />
    </>
  );
}

/** Moves the focus to the rows without changing the URL, because the URL names the view. */
function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Bar(): JSX.Element {
  const state = aboutProgram();
  return (
    <header class="bar">
      <h1>baton</h1>
      <p class="place">{state === null ? "" : shownText(`${state.servers} ${state.root}`)}</p>
      <p class={`live ${streamState.value}`}>{stateText()}</p>
      <label>
        <span class="unseen">Show only rows with this text</span>
        <input
          type="search"
          placeholder="filter"
          id="filter"
          value={rowFilterText.value}
          onInput={(event) => rowFilterText.value = event.currentTarget.value}
        />
      </label>
      <button type="button" onClick={theme.next} aria-label={`Colours: ${theme.choice.value}. Change`}>
        {theme.choice.value === "auto" ? "Auto" : theme.choice.value === "dark" ? "Dark" : "Light"}
      </button>
      <p class="mode">{receivedStreamHello.value?.mayAct === true ? "may act" : "read only"}</p>
    </header>
  );
}

function stateText(): string {
  if (streamState.value === "waiting") return "connecting";
  if (streamState.value === "refused") return "no access";
  if (streamState.value === "lost") return "baton ui does not respond";
  const state = aboutProgram();
  if (state?.isConnected !== true) return "no server responds";
  return state.isComplete ? "live" : "reading";
}

const counts: Partial<Record<views.ViewName, PageTable<unknown>>> = {
  locks: pageTables.locks,
  elections: pageTables.elections,
  barriers: pageTables.barriers,
  pools: pageTables.pools,
  ticks: pageTables.ticks,
  topics: pageTables.topics,
  retry: pageTables.stores,
  servers: pageTables.servers,
};

function Navigation(): JSX.Element {
  return (
    <nav aria-label="Views">
      <ul>
        {views.viewNames.map((name) => (
          <li key={name}>
            <a href={`#${name}`} aria-current={view.value === name ? "page" : undefined}>
              {views.viewTitles[name]} <Count table={counts[name]} />
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Count({ table }: { readonly table: PageTable<unknown> | undefined }): JSX.Element | null {
  const length = table?.keys.value.length ?? 0;
  return length === 0 ? null : <span class="number">{countText(length)}</span>;
}

function Connection(): JSX.Element | null {
  if (streamState.value === "lost") {
    return (
      <p class="notice">The rows are old: {shownText(streamFailureReason.value)}. The page connects again by itself.</p>
    );
  }
  if (streamState.value === "live" && aboutProgram()?.isConnected === false) {
    return <p class="notice">The rows are old: no coordination server responds. baton ui connects again by itself.</p>;
  }
  return null;
}

/** Asks for the token if it is missing or wrong. */
function TokenForm(): JSX.Element {
  const submit = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const token = new FormData(event.currentTarget).get("token");
    if (typeof token !== "string" || token.trim() === "") return;
    storePageToken(token.trim());
    reconnectRowStream();
  };
  return (
    <form class="token" onSubmit={submit}>
      <h2>Token</h2>
      <p>
        {readPageToken() === ""
          ? "Open the link that baton ui printed, or enter its token."
          : shownText(streamFailureReason.value)}
      </p>
      <label>
        Token <input name="token" type="password" autoComplete="off" required />
      </label>
      <button type="submit">Open</button>
    </form>
  );
}

const open = (table: OpenRowKey["table"]) => (key: string) => void (openRow.value = { table, key });

function View(): JSX.Element {
  switch (view.value) {
    case "overview":
      return <Overview />;
    case "locks":
      return (
        <One
          name="locks"
          table={pageTables.locks}
          columns={views.lockTableColumns}
          empty="No lock is held, and none is waited for."
        />
      );
    case "elections":
      return (
        <One
          name="elections"
          table={pageTables.elections}
          columns={views.electionTableColumns}
          empty="No election has candidates."
        />
      );
    case "barriers":
      return (
        <One
          name="barriers"
          table={pageTables.barriers}
          columns={views.barrierTableColumns}
          empty="No barrier is in use, and no gate is closed."
        />
      );
    case "pools":
      return (
        <One
          name="pools"
          table={pageTables.pools}
          columns={views.poolTableColumns}
          empty="No pool runs, and no results are stored."
        />
      );
    case "ticks":
      return <One name="ticks" table={pageTables.ticks} columns={views.tickTableColumns} empty="No lock has ticks." />;
    case "topics":
      return (
        <One name="topics" table={pageTables.topics} columns={views.topicTableColumns} empty="There are no topics." />
      );
    case "retry":
      return (
        <One
          name="stores"
          table={pageTables.stores}
          columns={views.storeTableColumns}
          empty="This machine has no message stores of this user."
        />
      );
    case "servers":
      return <Servers />;
  }
}

function One<Row>({ name, table, columns, empty }: {
  readonly name: OpenRowKey["table"];
  readonly table: PageTable<Row>;
  readonly columns: readonly TableColumn<Row>[];
  readonly empty: string;
}): JSX.Element {
  const title = views.viewTitles[view.value];
  return (
    <>
      <h2>{title}</h2>
      <DataTable
        key={name}
        caption={title}
        table={table}
        columns={columns}
        empty={empty}
        onOpen={open(name)}
      />
    </>
  );
}

function Servers(): JSX.Element {
  const state = aboutProgram();
  return (
    <>
      <h2>Coordination</h2>
      <dl>
        <div>
          <dt>Servers</dt>
          <dd>{shownText(state?.servers ?? "") || "-"}</dd>
        </div>
        <div>
          <dt>Root</dt>
          <dd>{shownText(state?.root ?? "") || "-"}</dd>
        </div>
        <div>
          <dt>State</dt>
          <dd>{stateText()}</dd>
        </div>
        <div>
          <dt>baton</dt>
          <dd>{shownText(state?.version ?? "")}</dd>
        </div>
      </dl>
      <h2>Publish/subscribe</h2>
      <DataTable
        caption="Servers of publish/subscribe"
        table={pageTables.servers}
        columns={views.serverTableColumns}
        empty="There are no servers of publish/subscribe."
        onOpen={open("servers")}
      />
      <h2>Processes</h2>
      <DataTable
        caption="Processes that serve metrics"
        table={pageTables.processes}
        columns={views.processTableColumns}
        empty="No process that serves metrics is known; name some with --metrics."
        onOpen={open("processes")}
      />
    </>
  );
}

function Overview(): JSX.Element {
  const list = needsAttention.value;
  return (
    <>
      <h2>Needs attention</h2>
      {list.length === 0 ? <p>Nothing.</p> : (
        <ul class="attention">
          {list.map(({ view: to, text }) => (
            <li key={text}>
              <a href={`#${to}`}>{text}</a>
            </li>
          ))}
        </ul>
      )}
      <h2>In use</h2>
      <ul class="cards">
        {views.viewNames.filter((name) => counts[name] !== undefined).map((name) => (
          <li key={name}>
            <a href={`#${name}`}>
              <strong>{countText(counts[name]?.keys.value.length ?? 0)}</strong> {views.viewTitles[name].toLowerCase()}
            </a>
          </li>
        ))}
      </ul>
      <ActionList />
    </>
  );
}

/** Shows the last actions that users have requested in any browser. */
function ActionList(): JSX.Element | null {
  const actions = aboutProgram()?.actions ?? [];
  if (actions.length === 0) return null;
  const kinds = { running: "idle", done: "good", failed: "bad" } as const;
  return (
    <>
      <h2>Actions</h2>
      <table>
        <caption class="unseen">The last actions, the newest first</caption>
        <thead>
          <tr>{["Time (UTC)", "Action", "Result"].map((head) => <th key={head} scope="col">{head}</th>)}</tr>
        </thead>
        <tbody>
          {actions.map(({ number, atMs, what, state, result }) => (
            <tr key={number}>
              <th scope="row">{utcTimeText(atMs)}</th>
              <td data-head="Action">{shownText(what)}</td>
              <td data-head="Result">
                <StateMark kind={kinds[state]} text={result === "" ? state : result} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/**
 * How often a screen reader announces the connection and what needs attention, in milliseconds. Rows are never
 * announced.
 */
const announceEveryMs = 10_000;

function Announcements(): JSX.Element {
  const said: Signal<{ readonly text: string; readonly atMs: number }> = useComputed(() => {
    const count = needsAttention.value.length;
    const attention = count === 0
      ? ""
      : `, ${countText(count)} ${count === 1 ? "thing needs" : "things need"} attention`;
    return { text: `${stateText()}${attention}`, atMs: programNowMs.value - programNowMs.value % announceEveryMs };
  });
  const text = useSlowText(said);
  return <p class="unseen" role="status">{text}</p>;
}

/** Returns a text that changes at most once per interval. */
function useSlowText(said: Signal<{ readonly text: string; readonly atMs: number }>): Signal<string> {
  const slow = useComputed(() => ({ current: "", atMs: 0 })).peek();
  return useComputed(() => {
    const { text, atMs } = said.value;
    if (atMs !== slow.atMs) {
      slow.atMs = atMs;
      slow.current = text;
    }
    return slow.current;
  });
}
