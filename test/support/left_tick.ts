/** A tick whose host died: a service that has the schedule with `retry` takes it over. */
import type { BatonSession } from "./baton_session.ts";

/** Claims the tick of this minute under the lock, and kills the call. Resolves when the lock is free again. */
export async function leaveTick(session: BatonSession, name: string): Promise<void> {
  const began = `began-${name}`;
  const line = `--tick '* * * * *' --timezone UTC --catch-up 1h -- sh -c 'echo >"$dir/${began}"; sleep 60'`;
  const dying = session.start(`exec "$baton" lock ${name} ${line}`);
  await session.made(began);
  dying.child.kill("SIGKILL");
  await dying.ended;
  const { code } = await session.run(`"$baton" lock -w 40 ${name} -- true`);
  if (code !== 0) throw new Error(`"${name}" is not free: ${code}`);
}
