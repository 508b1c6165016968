/** The dialog with the details of one row. It updates when the row changes. */
import { type Signal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import { ageText, countText, shownText, utcTimeText } from "../ui/shown_text.ts";
import type {
  PersonRow,
  PoolRow,
  ServerRow,
  ShownTopicRow,
  StoreRow,
  TickRow,
  TickRunRow,
  UseRow,
} from "../ui/ui_rows.ts";
import { HolderActions } from "./action_dialog.tsx";
import { DeadLetters } from "./dead_letters.tsx";
import { pageTables } from "./page_state.ts";
import { AgeText, personText, personWhyText, StateMark, TickTimeLine } from "./row_parts.tsx";
import { ServerActions, TopicDetails } from "./topic_view.tsx";
import { tickState } from "./views.tsx";

export interface OpenRowKey {
  readonly table: keyof typeof pageTables;
  readonly key: string;
}

export function RowDialog({ open }: { readonly open: Signal<OpenRowKey | null> }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useSignalEffect(() => {
    if (open.value === null) dialog.current?.close();
    else if (dialog.current?.open === false) dialog.current.showModal();
  });
  const shown = open.value;
  const title = shown === null ? "" : `${titles[shown.table] ?? "Row"} ${shownText(nameOf(shown))}`;
  return (
    <dialog ref={dialog} aria-label={title} onClose={() => open.value = null}>
      {shown !== null && (
        <>
          <header>
            <h2>{title}</h2>
            <button type="button" onClick={() => open.value = null}>Close</button>
          </header>
          <Details shown={shown} />
        </>
      )}
    </dialog>
  );
}

const titles: Partial<Record<keyof typeof pageTables, string>> = {
  locks: "Lock",
  elections: "Election",
  barriers: "Barrier",
  pools: "Pool",
  ticks: "Tick of",
  topics: "Topic",
  servers: "Server",
  stores: "Store",
  processes: "Process",
};

function nameOf({ table, key }: OpenRowKey): string {
  const row = pageTables[table].rows.get(key)?.peek();
  return row !== undefined && "name" in row ? row.name : key;
}

function Details({ shown: { table, key } }: { readonly shown: OpenRowKey }): JSX.Element {
  void pageTables[table].keys.value; // the row may go
  const row = pageTables[table].rows.get(key)?.value;
  if (row === undefined) return <p role="status">It is no longer there.</p>;
  if (table === "locks" || table === "elections" || table === "barriers") return <UseDetails row={row as UseRow} />;
  if (table === "pools") return <PoolDetails row={row as PoolRow} />;
  if (table === "ticks") return <TickDetails row={row as TickRow} />;
  if (table === "topics") return <TopicDetails key={key} row={row as ShownTopicRow} />;
  return (
    <>
      <Fields fields={Object.entries(row).map(([name, value]) => [fieldName(name), fieldText(name, value)])} />
      {table === "servers" && <ServerActions row={row as ServerRow} />}
      {table === "stores" && <DeadLetters key={key} store={row as StoreRow} />}
    </>
  );
}

const fieldName = (name: string) => {
  const words = name.replace(/Ms$/, "").replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return words.replace(/^is /, "").replace(/^./, (letter) => letter.toUpperCase());
};

function fieldText(name: string, value: unknown): ComponentChildren {
  if (value === null) return "-";
  if (typeof value === "number") return name.endsWith("Ms") ? utcTimeText(value) : countText(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") {
    return Object.entries(value).map(([key, one]) => `${shownText(key)} ${String(one)}`).join(", ") || "-";
  }
  return shownText(String(value));
}

function Fields({ fields }: { readonly fields: readonly (readonly [string, ComponentChildren])[] }): JSX.Element {
  return (
    <dl>
      {fields.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value === "" ? "-" : value}</dd>
        </div>
      ))}
    </dl>
  );
}

function UseDetails({ row }: { readonly row: UseRow }): JSX.Element {
  const { kind, limit, holders, waiters, holding, waiting, problem } = row;
  const words = kind === "election"
    ? { holders: "Leader", waiters: "Candidates, in their order" }
    : kind === "lock"
    ? { holders: "Holders", waiters: "Queue, in its order" }
    : { holders: "Inside", waiters: "Waiting" };
  return (
    <>
      {problem !== null && (
        <p>
          <StateMark kind="bad" text={problem} />
        </p>
      )}
      {limit !== null && <p>{kind === "barrier" ? "Members that it needs" : "Permits"}: {countText(limit)}</p>}
      <PeopleTable caption={words.holders} people={holders} count={holding} row={row} isQueue={false} />
      <PeopleTable caption={words.waiters} people={waiters} count={waiting} row={row} isQueue />
    </>
  );
}

function PeopleTable({ caption, people, count, row, isQueue }: {
  readonly caption: string;
  readonly people: readonly PersonRow[];
  readonly count: number | null;
  readonly row: UseRow;
  readonly isQueue: boolean;
}): JSX.Element {
  if (people.length === 0) return <p>{caption}: {count === null ? "hidden by an access list" : "none"}</p>;
  const heads = [isQueue ? "Place" : "Rank", "Process", "For", "How", isQueue ? "Id" : "Token", "Why"];
  return (
    <>
      <table>
        <caption>{caption} ({countText(count)})</caption>
        <thead>
          <tr>{heads.map((head) => <th key={head} scope="col">{head}</th>)}</tr>
        </thead>
        <tbody>
          {people.map((person, index) => (
            <tr key={person.id ?? index}>
              <td data-head={heads[0]}>{person.place ?? "-"}</td>
              <th scope="row">
                {shownText(personText(person))} {!isQueue && <HolderActions row={row} person={person} />}
              </th>
              <td data-head="For">
                <AgeText sinceMs={person.sinceMs} />
              </td>
              <td data-head="How">{person.mode ?? "-"}</td>
              <td data-head={heads[4]}>{shownText((isQueue ? person.id?.slice(0, 8) : person.token) ?? "-")}</td>
              <td data-head="Why">{shownText(personWhyText(person)) || "-"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {(count ?? 0) > people.length && <p>The first {people.length} are shown.</p>}
    </>
  );
}

function PoolDetails({ row: { done, failed, running, items } }: { readonly row: PoolRow }): JSX.Element {
  return (
    <>
      <Fields fields={[["Running", countText(running)], ["Done", countText(done)], ["Failed", countText(failed)]]} />
      {items.length === 0 ? <p>No item runs, and none has failed.</p> : (
        <table>
          <caption>Items that run or failed</caption>
          <thead>
            <tr>{["Item", "State", "For", "By", "Detail"].map((head) => <th key={head} scope="col">{head}</th>)}</tr>
          </thead>
          <tbody>
            {items.map(({ item, state, by, sinceMs, what }) => (
              <tr key={`${state} ${item}`}>
                <th scope="row">{shownText(item)}</th>
                <td data-head="State">
                  <StateMark kind={state === "failed" ? "bad" : "good"} text={state} />
                </td>
                <td data-head="For">
                  <AgeText sinceMs={sinceMs} />
                </td>
                <td data-head="By">{shownText(by) || "-"}</td>
                <td data-head="Detail">{shownText(what) || "-"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function TickDetails({ row }: { readonly row: TickRow }): JSX.Element {
  const { schedule, zone, nextMs, open, runs } = row;
  const { kind, text } = tickState(row, Date.now());
  return (
    <>
      <Fields
        fields={[
          ["Schedule", shownText(`${schedule} (${zone})`)],
          ["State", <StateMark key="state" kind={kind} text={text} />],
          ["Next", nextMs === null ? "none" : utcTimeText(nextMs)],
          ...(open === null ? [] : [["Runs since", utcTimeText(open.beganMs)] as const]),
        ]}
      />
      <TickTimeLine row={row} />
      {runs.length > 0 && (
        <table>
          <caption>Last ticks, the newest first (UTC)</caption>
          <thead>
            <tr>
              {["Tick", "Result", "Try", "Host", "Took", "Why"].map((head) => <th key={head} scope="col">{head}</th>)}
            </tr>
          </thead>
          <tbody>
            {runs.toReversed().map((run) => <RunRow key={`${run.tickMs} ${run.attempt} ${run.result}`} run={run} />)}
          </tbody>
        </table>
      )}
    </>
  );
}

function RunRow({ run }: { readonly run: TickRunRow }): JSX.Element {
  const { tickMs, untilMs, count, result, attempt, host, beganMs, endedMs, exitCode, signal, why } = run;
  const range = count > 1 ? ` to ${utcTimeText(untilMs)} (${countText(count)})` : "";
  const end = signal ?? (exitCode === null || exitCode === 0 ? "" : `exit ${exitCode}`);
  return (
    <tr>
      <th scope="row">{utcTimeText(tickMs)}{range}</th>
      <td data-head="Result">
        <StateMark kind={result === "done" ? "good" : result === "skipped" ? "warn" : "bad"} text={result} />
      </td>
      <td data-head="Try">{attempt === 0 ? "-" : attempt}</td>
      <td data-head="Host">{shownText(host) || "-"}</td>
      <td data-head="Took">{beganMs === null || endedMs === null ? "-" : ageText(endedMs - beganMs)}</td>
      <td data-head="Why">{[end, shownText(why)].filter((text) => text !== "").join(", ") || "-"}</td>
    </tr>
  );
}
