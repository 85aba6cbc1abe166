'use strict';

/*
 * The model of pgnetlat_predict() (sql/judgement/what_if.sql, where it is explained),
 * step by step and with its names.
 */
function predict(given, asked) {
  const warm = 0.035, colder = 0.08, warmWait = 0.25, doubt = 6, wakeup = 0.03, clientTurn = 0.1, margin = 0.05;
  const { min, max } = Math;
  const ratio = (a, b, otherwise) => (b === 0 ? otherwise : a / b);
  const within = (x, low, high) => x === null || (x >= low && x <= high);
  const g = given;
  const want = { rtt: null, batch: null, speed: null, sessions: null, ...asked };

  if (!(g.transaction_time > 0 && g.busy_sessions > 0)
      || !within(want.rtt, 0, 60000) || (want.rtt !== null && g.rtt === null)
      || !within(want.batch, 1, 1000000) || (want.batch !== null && want.batch !== 1 && !(g.statements > 0))
      || !within(want.speed, 0.001, 1000) || !within(want.sessions, 1, 262143)) return null;

  // what is asked for, and what is known
  const toRtt = want.rtt ?? g.rtt ?? 0;
  const toSpeed = want.speed ?? 1;
  const toSessions = want.sessions ?? g.busy_sessions;
  const toTrips = want.batch > 1
    ? min(g.round_trips, g.round_trips < 1.5 ? g.statements / want.batch : Math.ceil(g.statements / want.batch - 1e-9))
    : g.round_trips;
  const fromRtt = g.rtt ?? 0;
  const tripTime = g.network_time - g.stream_time;
  const thinkTime = ratio(g.client_time, g.round_trips, 0);
  const elsewhereTime = g.transaction_time - g.network_time - g.client_time - g.cpu_time - g.io_time - g.lock_time - g.queue_time;

  const result = (bound) => {
    const slow = bound === 'slow', fast = bound === 'fast';
    const bounded = (likely, one, other) => (slow ? max(one, other) : fast ? min(one, other) : likely);

    // 1. round trips, and what large responses take beyond them
    const newTripTime = max(tripTime - g.round_trips * fromRtt, 0) + toTrips * toRtt;
    const longer = ratio(toRtt, fromRtt, 1);
    const newStreamTime = g.stream_time * bounded(g.stream_time >= fromRtt ? longer : 1, longer, 1);
    const newClientTime = g.client_time * (fast && g.stream_time >= fromRtt / 2 ? min(longer, 1) : 1);

    // 2. turns of server and client
    const turn = (rtt) => warm + colder * Math.log10(1 + (rtt + thinkTime) / warmWait);
    const turnLonger = toTrips * turn(toRtt) - g.round_trips * turn(fromRtt);
    const turnsLonger = max(bounded(turnLonger, turnLonger * doubt, 0), -0.95 * (g.cpu_time + newClientTime));
    const newElsewhereTime = bounded(elsewhereTime, elsewhereTime, elsewhereTime / toSpeed);

    // 3. a transaction alone
    const alone = newTripTime + newStreamTime + newClientTime + turnsLonger + (g.cpu_time + g.io_time) / toSpeed + newElsewhereTime;

    // 4. for how long it holds locks
    const inside = tripTime * max(1 - ratio(1, g.round_trips, 1), 0);
    const newInside = newTripTime * max(1 - ratio(1, toTrips, 1), 0);
    const work = g.cpu_time + g.io_time + g.queue_time;
    const hold = g.in_xact_wait_time + work + max(elsewhereTime - g.other_time, 0);
    const newHold = g.in_xact_wait_time + min(ratio(g.in_xact_wait_time, inside, 1), 1) * (newInside - inside)
      + turnsLonger * max(1 - ratio(1, toTrips, 1), 0) + work / toSpeed + max(newElsewhereTime - g.other_time, 0);
    const heldLonger = ratio(max(newHold, 0), hold, 1);
    const newLockTime = g.lock_time * bounded(heldLonger, heldLonger, 1);
    const newQueueTime = g.queue_time / toSpeed;

    // 5. waits for others
    const often = ratio(g.transaction_time, alone + newLockTime + newQueueTime, 1);
    const many = !fast || toSessions === g.busy_sessions ? toSessions / g.busy_sessions : toSessions > g.busy_sessions ? 1 : 0;
    const waits = many * (newLockTime * min(often * ratio(newLockTime, g.lock_time, 1), 1) + newQueueTime * min(often / toSpeed, 1));

    // 6. all turns on the processors
    const besideWork = g.cpu_time + (slow ? min(g.queue_time, 4 * g.cpu_time) : 0);
    const besideWakeup = fast ? 0 : wakeup;
    const besideClient = slow ? min(g.client_time, g.round_trips * clientTurn) : 0;
    const processor = g.busy_sessions / g.processors * (besideWork + g.round_trips * besideWakeup + besideClient);
    const newProcessor = toSessions / g.processors * ((besideWork + toTrips * besideWakeup) / toSpeed + besideClient);
    const busy = newProcessor * min(ratio(g.transaction_time, processor, 1), 1);

    // 7. the longer of both
    const time = max(alone + waits, busy, 0) + (slow ? max(1 - g.busy_sessions / toSessions, 0) * busy : 0);
    return { time, throughput: ratio(1000 * toSessions, time, null) };
  };

  const likely = result('likely'), slow = result('slow'), fast = result('fast');
  if (likely.throughput === null) return { predicted_time: null, throughput: null, throughput_low: null, throughput_high: null };
  const change = min(max(Math.abs(Math.log(likely.time / g.transaction_time)), Math.abs(Math.log(toSessions / g.busy_sessions))), 1);
  return {
    predicted_time: 1000 * toSessions / likely.throughput,
    throughput: likely.throughput,
    throughput_low: min(slow.throughput ?? likely.throughput, likely.throughput) * (1 - margin * change),
    throughput_high: max(fast.throughput ?? likely.throughput, likely.throughput) * (1 + margin * change),
  };
}
