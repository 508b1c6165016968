/** Defects of supervision and guard that the worlds `job` and `hold` must show. */
import type { Mutant } from "../../../world/mutant.ts";

export const jobMutants: readonly Mutant[] = [
  {
    name: "a command is stopped when half of its time is over",
    world: "job",
    changes: [{ in: "child_plan:stopTimes", from: "grantedAtMs + maxHoldMs]", to: "grantedAtMs + maxHoldMs / 2]" }],
    kinds: ["wrong ending"],
    seeds: 60,
  },
  {
    name: "a command is not stopped when its time is over",
    world: "job",
    changes: [{ in: "child_plan:stopTimes", from: "grantedAtMs + maxHoldMs]", to: "grantedAtMs + maxHoldMs * 1e6]" }],
    kinds: ["wrong ending"],
    seeds: 60,
  },
  {
    name: "a command that was told to end has a tenth of the time for it",
    world: "job",
    changes: [{
      in: "child_plan:planChild",
      from: "stop.atMs + situation.killAfterMs)",
      to: "stop.atMs + situation.killAfterMs / 10)",
    }],
    kinds: ["killed too early"],
    seeds: 60,
  },
  {
    name: "a guard ends with its pipe, and kills nothing",
    world: "job",
    changes: [{
      in: "guard_main:GuardLoop.step",
      from: "      return this.#clearAll();",
      to: '      return { kind: "end", session: null };',
    }],
    kinds: ["process outlived its lock"],
    seeds: 60,
  },
  {
    name: "a guard ends the session while its kills go on",
    world: "job",
    changes: [{
      in: "guard_main:Clearing.step",
      from: "    if (this.#ends.size === this.#kills.size) return this.#end();\n",
      to: "    if (this.#ends.size <= this.#kills.size) return this.#end();\n",
    }, {
      in: "guard_state:chooseGuardSessionToEnd",
      from: "return [...jobs.keys()].every((cookie) => after.isCleared(cookie)) ? session : null;",
      to: "return session;",
    }],
    kinds: ["process outlived its lock"],
    seeds: 100,
  },
  {
    name: "a guard takes one pass that finds nothing for proof, also while a command is being started",
    world: "job",
    changes: [{
      in: "kill_job:JobKiller.killOnce",
      from: "    const isCleared = isLast && isEmpty && !wasBeingStarted;",
      to: "    const isCleared = isEmpty;",
    }],
    kinds: ["process outlived its lock"],
    seeds: 100,
  },
  {
    name: "a guard does not wait for a command that is being started",
    world: "job",
    changes: [{
      in: "kill_job:JobKiller.killOnce",
      from: "isEmpty && !wasBeingStarted;",
      to: "isEmpty;",
    }, {
      in: "kill_job:JobKiller.killOnce",
      from: "isCertain: !this.#isInDoubt()",
      to: "isCertain: !wasBeingStarted && !this.#isInDoubt()",
    }],
    kinds: ["process outlived its lock"],
    seeds: 60,
  },
  {
    name: "a guard kills only the process group",
    world: "job",
    changes: [{
      in: "known_processes:kindOf",
      from: '  if (environ !== null && parseJobCookies(environ).includes(cookie)) return "marked";\n',
      to: "",
    }, {
      in: "known_processes:JobProcessFinder.find",
      from: "    this.rememberDescendants();\n    const pids",
      to: "    const pids",
    }],
    kinds: ["process outlived its lock", "stranger signalled"],
    seeds: 100,
  },
  {
    name: "a guard does not look at marks",
    world: "job",
    changes: [{
      in: "known_processes:kindOf",
      from: '  if (environ !== null && parseJobCookies(environ).includes(cookie)) return "marked";\n',
      to: "",
    }],
    kinds: ["process outlived its lock"],
    seeds: 100,
  },
  {
    name: "a guard does not look whether the group is still the command's",
    world: "job",
    changes: [{
      in: "kill_job:ProcessGroupWatch.isOurs",
      from: "return this.#isOurs &&= this.#check();",
      to: "return this.#isOurs;",
    }],
    kinds: ["stranger signalled"],
    seeds: 200,
  },
  {
    name: "a known process is recognized by its number alone",
    world: "job",
    changes: [{
      in: "known_processes:JobProcessFinder.#isKnown",
      from: "(row?.dead === false && row.startTicks === this.#known.get(pid))",
      to: "row?.dead === false",
    }],
    kinds: ["stranger signalled"],
    seeds: 60,
  },
  {
    name: "baton waits only for the command's own process before it releases",
    world: "job",
    changes: [{
      in: "child_run:ChildRun.#act",
      from: "      const alive = processes.alive(); // this is slow if processes start and end often\n",
      to: "      const alive: readonly number[] = [];\n",
    }],
    kinds: ["process outlived its lock"],
    seeds: 20,
  },
  {
    name: "baton looks only at the process group",
    world: "job",
    changes: [{
      in: "job_processes:JobProcesses.find",
      from: "      return {\n" +
        "        alive: findLivingProcesses(() => reapAndListDescendants(libc, isNotOfTheCommand), " +
        "isProcessAlive),\n        isCertain: true,\n      };",
      to: "      reapAdoptedOrphans(libc);\n      return { alive: sendSignal(-pid, 0) ? [pid] : [], isCertain: true };",
    }],
    kinds: ["process outlived its lock", "wrong ending", "too slow"],
    seeds: 20,
  },
  {
    name: "baton does not adopt orphans",
    world: "job",
    changes: [{
      in: "supervise_child:PreparedChild.run",
      from: "    const adopts = libc?.becomeSubreaper() ?? false;",
      to: "    const adopts = libc !== null;",
    }],
    kinds: ["process outlived its lock"],
    seeds: 60,
  },
  {
    name: "baton signals the helpers of others among its children",
    world: "job",
    changes: [{
      in: "job_processes:isNotOfTheCommand",
      from: "  return isOwnHelperProcess(pid) || isBatonServiceProcess(pid);",
      to: "  return isOwnHelperProcess(pid);",
    }],
    kinds: ["stranger signalled"],
    seeds: 60,
  },
  {
    name: "a command is started before the guard watches it",
    world: "job",
    changes: [{
      in: "supervise_child:PreparedChild.#prepare",
      from: "    return this.#ready = { libc, child, obstacle: await watching };",
      to: "    void watching;\n    return this.#ready = { libc, child, obstacle: null };",
    }],
    kinds: ["started without a guard"],
    seeds: 60,
  },
  {
    name: "baton gives no deadline to its guard",
    world: "job",
    changes: [{
      in: "guard:deadlineOf",
      from: "  return (libc?.bootTimeMs() ?? 0) + options.remainingMs();",
      to: "  return (libc?.bootTimeMs() ?? 0) + options.remainingMs() + 1e9;",
    }],
    kinds: ["process outlived its lock"],
    from: 20,
    seeds: 60,
  },
  {
    name: "a deadline is counted from the time at which its line is read",
    world: "job",
    changes: [{
      in: "guard_main:GuardLoop.step",
      from: "    for (const line of lines) this.#state = readGuardLine(this.#state, line);",
      to: "    for (const line of lines) {\n" +
        "        const moved = line.replace(/^(watch|renew) (\\S+) \\d+/, (_all, verb, cookie) =>\n" +
        "          `${verb} ${cookie} ${Math.floor(this.#libc.bootTimeMs()) + 8000}`);\n" +
        "        this.#state = readGuardLine(this.#state, moved);\n      }",
    }],
    kinds: ["process outlived its lock"],
    from: 20,
    seeds: 60,
  },
  {
    name: "a stopped process is told to end, and not continued",
    world: "job",
    changes: [{
      in: "child_run:ChildRun.#sendStop",
      from: '    if (!this.#frozen) this.#options.processes.signalAll("SIGCONT");\n',
      to: "",
    }],
    kinds: ["left stopped"],
    from: 26,
    seeds: 60,
  },
  {
    name: "a frozen command is not continued",
    world: "job",
    changes: [{
      in: "child_run:ChildRun.#setFrozen",
      from: '    this.#options.processes.signalAll(frozen ? "SIGSTOP" : "SIGCONT");',
      to: '    if (frozen) this.#options.processes.signalAll("SIGSTOP");',
    }],
    kinds: ["left stopped"],
    from: 20,
    seeds: 60,
  },
  {
    name: "baton releases the lock after a breach",
    world: "job",
    changes: [{
      in: "child_run:ChildRun.#giveUp",
      from: '    this.#close({ kind: "breach", child: this.#end, survivors, isDead: false });',
      to: "    this.#close(this.#ending());",
    }],
    kinds: ["process outlived its lock", "wrong ending"],
    seeds: 200,
  },
  {
    name: "a guard lets the session of a dead baton expire while it cannot stop a process",
    world: "job",
    changes: [{
      in: "guard_main:Clearing.step",
      from: "    if (!isKept || !isStuck) return",
      to: "    if (forMs > 0) return",
    }],
    kinds: ["process outlived its lock"],
    seeds: 60,
  },
  {
    name: "a guard lets the session of a stopped baton expire while it cannot stop a process",
    world: "job",
    changes: [{
      in: "guard_main:GuardLoop.#stuckJobs",
      from: "stuck.length === 0 || readProcess",
      to: "stuck.length >= 0 || readProcess",
    }],
    kinds: ["process outlived its lock"],
    seeds: 1,
    faults: "test/world/found/stopped_baton_of_an_unstoppable_process.json",
  },
  {
    name: "the processes of several commands are not told apart",
    world: "job",
    changes: [{
      in: "job_table:SharedJobProcesses.#ownPids",
      from: "      certain.has(cookie) ||",
      to: "      certain.size > 0 || certain.has(cookie) ||",
    }],
    kinds: ["wrong ending"],
    seeds: 60,
  },
  {
    name: "a lock that is lost is released as its script asks, and the script goes on",
    world: "hold",
    changes: [{
      in: "supervise_script:ReleaseHandler.#handle",
      from: 'this.#stopReason ?? (lease.isHeld() ? null : "lost");',
      to: "this.#stopReason;",
    }],
    kinds: ["wrong ending", "process outlived its lock"],
    faults: "test/world/found/release_of_a_lost_lock.json",
    seeds: 1,
  },
  {
    name: "what a script has started is stopped although it has released its lock",
    world: "hold",
    changes: [{
      in: "supervise_script:superviseScript",
      from: "    processes.release();\n    end.resolve(",
      to: "    end.resolve(",
    }],
    kinds: ["stranger signalled", "wrong ending"],
    seeds: 40,
  },
  {
    name: "what a script leaves running is left",
    world: "hold",
    changes: [{
      in: "supervise_script:ProcessesOfScript.find",
      from: "!this.hasEnded || this.#isStopped || !this.#known.isOlder(pid);",
      to: "!this.hasEnded || this.#isStopped;",
    }],
    kinds: ["process outlived its lock"],
    seeds: 40,
  },
];
