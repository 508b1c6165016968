/** The frame of the page: the rail of views, the bar, the tabs of a phone, and the parts of a view. */
import { signal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import { countText, shownText, utcTimeText } from "../ui/shown_text.ts";
import { attentionByView, countAttentionRows } from "./attention.ts";
import { rowFilterText } from "./data_table.tsx";
import { Icon, Logo, Mark, type MarkKind } from "./marks.tsx";
import { aboutProgram, programNowMs, receivedStreamHello, rememberedBrowserChoice, streamState } from "./page_state.ts";
import { rowsOfView, type ViewName, viewTitles } from "./view_names.ts";

export const openView = signal<ViewName>("overview");
const theme = rememberedBrowserChoice("baton-theme", ["auto", "light", "dark"]);

const railGroups: readonly (readonly [title: string, views: readonly ViewName[]])[] = [
  ["", ["overview"]],
  ["Coordination", ["locks", "elections", "barriers", "pools"]],
  ["Time", ["ticks"]],
  ["Messages", ["topics", "retry"]],
  ["System", ["servers"]],
];

/** Returns the state of the connections in words. The page is live only while a coordination server responds. */
export function connectionText(): string {
  if (streamState.value === "waiting") return "connecting";
  if (streamState.value === "refused") return "no access";
  if (streamState.value === "lost") return "baton ui does not respond";
  const state = aboutProgram();
  if (state === null) return "connecting";
  if (!state.isConnected) return state.isComplete ? "no server responds" : noReadingText(state.problems);
  return state.isComplete ? "live" : "reading";
}

/** Returns the state before the first reading: connecting, unless `baton ui` has reported a reason. */
const noReadingText = (problems: readonly string[]) => problems.length === 0 ? "connecting" : "no server responds";

export const isLive = (): boolean => connectionText() === "live";

function connectionKind(): MarkKind {
  const text = connectionText();
  if (text === "live") return "good";
  return text === "connecting" || text === "reading" ? "idle" : "bad";
}

export function Rail(): JSX.Element {
  const rail = useRef<HTMLElement>(null);
  useSignalEffect(() => {
    const link = rail.current?.querySelector(`a[href="#${openView.value}"]`);
    link?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  return (
    <nav ref={rail} class="rail" aria-label="Views">
      <p class="brand">
        <Logo />
        <span class="word">baton</span>
      </p>
      {railGroups.map(([title, views]) => (
        <div key={title}>
          {title !== "" && <h2>{title}</h2>}
          <ul>{views.map((name) => <RailEntry key={name} name={name} />)}</ul>
        </div>
      ))}
      <div class="foot">
        <p class="mode">{receivedStreamHello.value?.mayAct === true ? "can change things" : "read only"}</p>
        baton {shownText(aboutProgram()?.version ?? "")}
      </div>
    </nav>
  );
}

function RailEntry({ name }: { readonly name: ViewName }): JSX.Element {
  const count = isLive() ? rowsOfView(name) : 0;
  const kind = isLive() ? attentionByView.value.get(name) : undefined;
  const problems = countAttentionRows(name);
  return (
    <li>
      <a href={`#${name}`} title={viewTitles[name]} aria-current={openView.value === name ? "page" : undefined}>
        <Icon name={name} />
        <span class="word">{viewTitles[name]}</span>
        <span class="marks">
          {kind !== undefined && (
            <span class={`state ${kind}`}>
              <Mark kind={kind} label={kind === "bad" ? "problem" : "warning"} />
              {problems > 0 && <b class="number">{countText(problems)}</b>}
            </span>
          )}
          {count > 0 && <span class="number all">{countText(count)}</span>}
        </span>
      </a>
    </li>
  );
}

export function TopBar(): JSX.Element {
  useSignalEffect(() => void (document.documentElement.dataset["theme"] = theme.choice.value));
  const state = aboutProgram();
  const kind = connectionKind();
  return (
    <header class="bar">
      <p class={`live state ${kind}`}>
        <Mark kind={kind} />
        <span>{connectionText()}</span>
      </p>
      <p class="place mono">{state === null ? "" : shownText(`${state.servers} ${state.root}`)}</p>
      <p class="clock mono">{isLive() ? `${utcTimeText(programNowMs.value).slice(11, 19)} UTC` : ""}</p>
      <label class="find">
        <span class="unseen">Show only rows with this text</span>
        <Icon name="search" />
        <input
          type="search"
          placeholder="Find by name, host, user"
          id="filter"
          value={rowFilterText.value}
          onInput={(event) => rowFilterText.value = event.currentTarget.value}
        />
        <kbd>/</kbd>
      </label>
      <button
        type="button"
        class="square"
        onClick={theme.next}
        aria-label={`Colors: ${theme.choice.value}. Change`}
        title={`Colors: ${theme.choice.value}`}
      >
        <Icon name="theme" />
      </button>
    </header>
  );
}

export function PageHead({ title, text, children }: {
  readonly title: ComponentChildren;
  readonly text: ComponentChildren;
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="head">
      <h1>{title}</h1>
      <p>{text}</p>
      {children}
    </div>
  );
}

export function Card({ title, more, size = "", children }: {
  readonly title: string;
  readonly more?: ComponentChildren;
  /** A class that sets the width in a grid: `wide` or `narrow`. */
  readonly size?: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <section class={`card ${size}`} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {more !== undefined && <div class="more">{more}</div>}
      </header>
      {children}
    </section>
  );
}

/** A card of a few values in a row. */
export function Facts({ facts }: {
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[];
}): JSX.Element {
  return (
    <dl class="card facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
