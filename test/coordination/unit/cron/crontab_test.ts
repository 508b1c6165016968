import { expect, test } from "bun:test";
import { type Crontab, parseCrontab } from "../../../../src/coordination/cron/crontab.ts";
import { Schedule } from "../../../../src/base/schedule/schedule.ts";
import { scheduleId } from "../../../../src/base/schedule/schedule_text.ts";

const read = (text: string): Crontab =>
  parseCrontab(text, {
    group: "fleet",
    zone: "UTC",
    isUser: (word) => word === "root",
    isProgram: (word, path) => path === "/srv/bin" && ["root", "sun", "7"].includes(word),
  });

/** The only mistake of a text, with its line. */
function mistakeOf(text: string): string {
  const { mistakes } = read(text);
  expect([text, mistakes.length]).toEqual([text, 1]);
  return mistakes.map(({ line, what }) => `${line}: ${what}`).join("\n");
}

test("a job has the variables and the zone of the lines before it, and the options of the comment before it", () => {
  const { jobs, mistakes, warnings } = read(`# a comment
SHELL=/bin/bash
NAME = "two words "
"ODD" = 'it''s'
0 3 * * * /srv/first.sh
CRON_TZ=Europe/Berlin
#baton name=backup catch-up=6h retry=2 overlap=wait max-hold=90m

# between the options and the job
NAME=
@daily	/srv/backup.sh  --all
CRON_TZ=
  5 4 * * SUN  third
`);
  expect([mistakes, warnings]).toEqual([[], []]);
  const plain = jobs.map(({ line, name, schedule, command, input }) => [
    line,
    name,
    schedule.text,
    schedule.zone,
    command,
    input,
  ]);
  expect(plain).toEqual([
    [5, `fleet/${scheduleId("0 3 * * *")}`, "0 3 * * *", "UTC", "/srv/first.sh", null],
    [11, "backup", "0 0 * * *", "Europe/Berlin", "/srv/backup.sh  --all", null],
    [13, `fleet/${scheduleId("5 4 * * 0")}`, "5 4 * * 0", "UTC", "third", null],
  ]);
  expect(Object.fromEntries(jobs[0]?.variables ?? [])).toEqual({
    SHELL: "/bin/bash",
    NAME: "two words ",
    ODD: "it''s",
  });
  expect(jobs[1]?.variables.get("NAME")).toBe("");
  const noLimits = { onFailure: undefined, historyKeep: undefined, historyMaxAge: undefined };
  expect(jobs[1]?.options).toEqual({
    catchUpMs: 21_600_000,
    retriesMax: 2,
    retryDelayMs: 60_000,
    jitterMs: 0,
    overlap: "wait",
    maxHoldMs: 5_400_000,
    ...noLimits,
  });
  expect(jobs[2]?.options).toEqual({
    catchUpMs: undefined,
    retriesMax: 0,
    retryDelayMs: 60_000,
    jitterMs: 0,
    overlap: "skip",
    maxHoldMs: undefined,
    ...noLimits,
  });
});

test("a further try waits for a minute, or for the time that is given", () => {
  const delayOf = (options: string) =>
    read(`#baton retry=1 catch-up=1h ${options}\n* * * * * x\n`).jobs[0]?.options.retryDelayMs;
  expect(["", "retry-delay=10s", "retry-delay=0"].map(delayOf)).toEqual([60_000, 10_000, 0]);
});

test("limits of the history of a job are read; a limit that the history cannot have is a mistake", () => {
  const options = (text: string) => read(`#baton ${text}\n* * * * * x\n`);
  expect(options("history-keep=500 history-max-age=90d").jobs[0]?.options).toMatchObject({
    historyKeep: 500,
    historyMaxAge: 90 * 86_400_000,
  });
  expect(options("history-keep=7").mistakes[0]?.what).toContain("history-keep");
  expect(options("history-max-age=1h").mistakes[0]?.what).toContain("history-max-age");
});

test("text after the first % is the standard input, with a line feed for each %; a backslash keeps it", () => {
  const [job] = read("* * * * * date +\\%F; cat%first%second \\% line \n").jobs;
  expect([job?.command, job?.input]).toEqual(["date +%F; cat", "first\nsecond % line \n"]);
});

test("standard input ends with a line feed, as in cron: it is added where none is, not to an empty input", () => {
  const inputOf = (text: string) => read(`* * * * * cat${text}`).jobs[0]?.input;
  expect(["", "%", "%%", "%a", "%a%", "%a%%"].map(inputOf)).toEqual([null, "", "\n", "a\n", "a\n", "a\n\n"]);
});

test("a command named as a user, or written as a field of a schedule, is found on the PATH of its line", () => {
  for (const command of ["root --now", "sun", "7 up"]) {
    expect(read(`PATH=/srv/bin\n0 3 * * * ${command}`).mistakes).toEqual([]);
  }
  expect(read("0 3 * * * ./7 x\n0 4 * * * 7z a\n0 5 * * * [ -e x ]\n0 6 * * * monday").mistakes).toEqual([]);
});

test("lines with one schedule and no name are jobs named by their commands, whatever other lines say", () => {
  const namesOf = (text: string) => read(text).jobs.map(({ name }) => name);
  const id = scheduleId("0 0 * * *");
  const [a = "", b = "", ...none] = namesOf("@daily /usr/bin/a\n0 0 * * * /usr/bin/b --all\n");
  expect(none).toEqual([]);
  for (const name of [a, b]) expect(name).toMatch(new RegExp(`^fleet/${id}-[0-9a-f]{12}$`));
  expect(a).not.toBe(b);
  expect(namesOf("@hourly x\n@daily /usr/bin/c\n@daily /usr/bin/b --all\n@daily /usr/bin/a").slice(2)).toEqual([b, a]);
  // A variable and options are no part of the name; the standard input and the time zone are.
  expect(namesOf("X=1\n#baton overlap=wait\n@daily /usr/bin/a\n@daily x")[0]).toBe(a);
  const apart = namesOf("@daily /usr/bin/a\n@daily /usr/bin/a%x\nCRON_TZ=Asia/Kolkata\n@daily /usr/bin/a");
  expect([apart[0], new Set(apart).size]).toEqual([a, 3]);
  // The only line of its schedule without a name keeps the name of the schedule.
  expect(namesOf("@daily /usr/bin/a\n#baton name=b\n@daily /usr/bin/b\n@hourly x")).toEqual([
    `fleet/${id}`,
    "b",
    `fleet/${scheduleId("0 * * * *")}`,
  ]);
});

test("lines that are the same are as many jobs, as with cron, and are warned of", () => {
  const { jobs, mistakes, warnings } = read("@daily x\n@daily x\n0 0 * * *   x\n");
  const [first = ""] = jobs.map(({ name }) => name);
  expect(jobs.map(({ name }) => name)).toEqual([first, `${first}-2`, `${first}-3`]);
  expect(mistakes).toEqual([]);
  expect(warnings.map(({ line, what }) => `${line}: ${what}`)).toEqual([
    "2: line 1 is the same; the command runs once for each of them, as with cron",
    "3: line 1 is the same; the command runs once for each of them, as with cron",
  ]);
});

test("each mistake has its line and what was expected", () => {
  const mistakes: [text: string, says: string][] = [
    [
      "\n0 25 * * * x",
      '2: "0 25 * * *" is not a schedule: the hour "25" contains "25", expected a number from 0 to 23',
    ],
    ["@reboot x", '1: "@reboot" is not a schedule: @reboot is about one host, not about a time'],
    ["@every 5m x", "1: "],
    ["0 ~ * * * x", "which each host would choose differently"],
    ["0 0 31 2 * x", "no year has such a day"],
    ["0 3 * *", '1: "0 3 * *" has 4 words, expected NAME=VALUE (letters, digits and _), or five fields of a schedule'],
    ["0 3 * * /srv/x.sh", '1: only four fields of a schedule stand before the command "/srv/x.sh"; expected five'],
    ["*/5 0-6 1,15 JAN echo a/b", '1: only four fields of a schedule stand before the command "echo"'],
    ["0 3 * * monday /srv/x.sh", '1: "0 3 * * monday" is not a schedule: the day of the week "monday" contains'],
    ["0 3 * * 1/2/3 /srv/x.sh", 'the day of the week "1/2/3" has two steps in one item'],
    ["A-B=3", '1: "A-B=3" has 1 word, expected NAME=VALUE'],
    [`x${"y".repeat(50)}`, `"x${"y".repeat(39)}…" has 1 word`],
    ["0 3 * * *", "1: the line has no command after the schedule"],
    ["@daily", "1: the line has no command after the schedule"],
    ["0 3 * * * %x", "1: the line has no command after the schedule"],
    ["0 3 * * * root /srv/x.sh", '1: "root" is a user of this machine, and no command; expected a command'],
    ["CRON_TZ=Mars/Base", '1: "Mars/Base" is not a time zone of this machine'],
    ['""=x', '1: "" is not the name of a variable'],
    ["#BATON name=a\n@daily x", "1: options of a job begin with #baton in small letters"],
    ["#baton: name=a\n@daily x", "1: options of a job begin with #baton in small letters"],
    ["#baton name\n@daily x", '1: "name" is not an option; expected KEY=VALUE'],
    ["#baton nam=a\n@daily x", "1: the option nam is unknown; did you mean name?"],
    ["#baton hosts=db*\n@daily x", "1: the option hosts is unknown; expected one of name, catch-up"],
    ["#baton name=a name=b\n@daily x", "1: the option name is given twice"],
    ["#baton retry=1\n@daily x", "1: the option retry needs catch-up"],
    ["#baton retry-delay=5m\n@daily x", "1: the option retry-delay needs retry"],
    ["#baton retry=1 catch-up=5m retry-delay=5m\n@daily x", "1: the option retry-delay is not shorter than catch-up"],
    ["#baton retry=1 catch-up=1h retry-delay=x\n@daily x", '1: the option retry-delay: "x" is not a duration'],
    ["#baton retry=0 catch-up=1h\n@daily x", '1: the option retry: "0" is not a whole number from 1 to 100'],
    ["#baton catch-up=40d\n@daily x", '1: the option catch-up: "40d" is not a duration of at most 720h'],
    ["#baton overlap=stop\n@daily x", '1: the option overlap: "stop" is not one of skip, wait'],
    ["#baton name=..\u0007\n@daily x", "cannot be the name of a lock: it contains a control character"],
    ["# baton name=a\n@daily x", "1: options of a job begin with #baton in small letters"],
    ["#baton name=a\n#baton name=b\n@daily x", "1: no job follows these options"],
    ["@daily x\n#baton name=a\n", "2: no job follows these options"],
    [
      "0 0 3 * * * x",
      '1: "*" is one more field of a schedule; expected five (minute, hour, day of the month, month, day of the week)',
    ],
    ["0 0 3 * * *", "and a command: seconds and years have no field"],
    ["0 30 14 * * * x", '"*" is one more field'],
    ["0 0 3 ? * MON-FRI x", '"MON-FRI" is one more field'],
    ["0 0 3 1 1 ? 2027 x", '"?" is one more field'],
    ["*/10 * * * * */2 x", '"*/2" is one more field'],
    ["0 0 3 1 * 1,3-5 x", '"1,3-5" is one more field'],
    ["0 0 12 1 * sun", '"sun" is one more field'],
    ["@daily * x", '"*" is one more field'],
    ["0 3 * * * *.sh", '"*.sh" is one more field'],
    ["0 0 12 * * L x", '"L" is one more field'],
    ["0 0 12 ? * 6#3 x", '"6#3" is one more field'],
    ["0 0 12 1 * 5L,2#1 x", '"5L,2#1" is one more field'],
    ["0 0 3 15 * 15W x", '"15W" is one more field'],
    ["#baton name=a\n@daily x\n#baton name=a\n@daily y", "4: line 2 has the same name and schedule"],
    ["@daily x\r", "1: the line ends with a carriage return; save the file with Unix line ends"],
    ["@daily x\0y", "1: the line contains a NUL character"],
    [`@daily ${"€".repeat(22_000)}`, "1: the line has 66007 bytes; the maximum is 65536"],
  ];
  for (const [text, says] of mistakes) expect(mistakeOf(text)).toContain(says);
  const many = Array.from({ length: 1001 }, (_, index) => `#baton name=j${index}\n@daily x`).join("\n");
  expect(mistakeOf(many)).toBe("2002: the file has 1001 jobs; the maximum is 1000");
  const variables = Array.from({ length: 1001 }, (_, index) => `V${index}=1`).join("\n");
  expect(mistakeOf(`${variables}\nV7=2\n@daily x`)).toBe('1001: "V1000" is one more variable; the maximum is 1000');
});

test("the value of an option may stand in quotation marks", () => {
  const failureOf = (option: string) => read(`#baton name=a ${option} retry=1 catch-up=1h\n@daily x`).jobs[0]?.options;
  expect(failureOf("on-failure=/srv/tell.sh")?.onFailure).toBe("/srv/tell.sh");
  expect(failureOf(`on-failure='mail -s "$X = %" ops'`)).toMatchObject({
    onFailure: 'mail -s "$X = %" ops',
    retriesMax: 1,
  });
  for (const wrong of ['on-failure=""', "on-failure=", "on-failure='mail -s", `on-failure='mail ops'x`]) {
    expect(mistakeOf(`#baton name=a ${wrong}\n@daily x`)).toContain("is not an option; expected KEY=VALUE");
  }
});

test("all mistakes are found, in the order of the lines", () => {
  const { jobs, mistakes } = read("@daily\n@weekly x\n#baton retry=1\n0 0\n#baton name=a");
  expect(mistakes.map(({ line }) => line)).toEqual([1, 3, 4, 5]);
  expect(jobs).toHaveLength(1);
});

test("a program that has the name of a user, and a user's name alone, are commands", () => {
  expect(read("@daily root").mistakes).toEqual([]);
  expect(read("@daily backup all").mistakes).toEqual([]);
});

test("variables that mean something to cron only are warned of", () => {
  const { warnings } = read('MAILTO=ops@example.org\nTZ=UTC\nRANDOM_DELAY=5\nMAILTO=""\n@daily x');
  expect(warnings.map(({ line, what }) => `${line} ${what.split(/[ :]/, 1)}`)).toEqual([
    "1 baton",
    "2 TZ",
    "3 RANDOM_DELAY",
  ]);
});

test("jitter delays the ticks of a job by a time that its name decides, and changes no name", () => {
  const { jobs, mistakes } = read(
    "#baton name=backup jitter=5m\n0 3 * * * first\n#baton jitter=1h\n0 4 * * * second\n0 5 * * * third\n",
  );
  expect(mistakes).toEqual([]);
  expect(jobs.map(({ name }) => name)).toEqual([
    "backup",
    `fleet/${scheduleId("0 4 * * *")}`,
    `fleet/${scheduleId("0 5 * * *")}`,
  ]);
  expect(jobs[0]?.schedule.text).toBe(new Schedule("0 3 * * *", "UTC").spread("backup", 300_000).text);
  expect(jobs.map(({ schedule }) => / \+\d+s$/.test(schedule.text))).toEqual([true, true, false]);
  expect(mistakeOf("#baton name=a jitter=25h\n@daily x")).toContain("the option jitter:");
});
