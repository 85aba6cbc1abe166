'use strict';

/*
 * The model of pgnetlat_predict() (sql/judgement/what_if.sql, where it is explained),
 * line by line, with NULL as there: least() and greatest() pass over it, and arithmetic
 * with it is NULL.
 */
function predict(given, asked) {
  const least = (...list) => { const known = list.filter((x) => x !== null); return known.length ? Math.min(...known) : null; };
  const greatest = (...list) => { const known = list.filter((x) => x !== null); return known.length ? Math.max(...known) : null; };
  const ratio = (a, b) => (a === null || b === null || b === 0 ? null : a / b);
  const minus = (a, b) => (a === null || b === null ? null : a - b);
  const cube = (x) => x * x * x;
  const root = (x) => Math.pow(x, 1 / 3);
  const g = given;
  const want = { rtt: null, batch: null, speed: null, sessions: null, ...asked };
  const within = (x, low, high) => x === null || (x >= low && x <= high);

  if (!(g.transaction_time > 0 && g.busy_sessions > 0)
      || !within(want.rtt, 0, 60000) || (want.rtt !== null && g.rtt === null)
      || !within(want.batch, 1, 1000000) || (want.batch !== null && want.batch !== 1 && !(g.statements > 0))
      || !within(want.speed, 0.001, 1000) || !within(want.sessions, 1, 262143)) return null;

  const oldRtt = g.rtt ?? 0;
  const toRtt = want.rtt ?? g.rtt ?? 0;
  const toSpeed = want.speed ?? 1;
  const toSessions = want.sessions ?? g.busy_sessions;
  const toTrips = want.batch > 1
    ? Math.min(g.round_trips, g.round_trips < 1.5 ? g.statements / want.batch : Math.ceil(g.statements / want.batch - 1e-9))
    : g.round_trips;
  const heldUp = g.transaction_time - g.network_time - g.client_time - g.cpu_time - g.io_time - g.lock_time - g.queue_time;
  const tripTime = g.network_time - g.stream_time;
  const client = ratio(g.client_time, g.round_trips) ?? 0;
  const holdsOld = greatest(minus(1, ratio(1, g.round_trips)), 0);
  const holdsNew = greatest(minus(1, ratio(1, toTrips)), 0);
  const holdsServer = least(greatest(minus(1, ratio(1, g.round_trips)), ratio(1, g.round_trips)), 1);
  const waits = tripTime * holdsOld;
  const known = Math.min(waits, g.in_xact_wait_time);

  const one = (isLikely, locks, streams, warmth, helps, beside) => {
    // what turns take longer because they come after a wait
    const others = isLikely ? g.cpu_time / g.processors : 0;
    const turn = (trips, rtt, busy) => trips
      * (0.035 + 0.08 * Math.log10(1 + Math.max(rtt + client, ratio(busy * others, trips) ?? 0) / 0.25));
    const turnOld = turn(g.round_trips, oldRtt, g.busy_sessions);
    const turnNew = turn(toTrips, toRtt, toSessions);
    const lost = least(ratio(warmth * turnOld, g.cpu_time + g.client_time), turnNew < turnOld ? 0.95 : null);
    const less = minus(1, ratio(turnNew, turnOld));
    const work = less === null || lost === null ? 1 : 1 - lost * less;
    const trips = Math.max(tripTime - g.round_trips * oldRtt, 0) + toTrips * toRtt;
    const stream = g.stream_time * (streams && oldRtt > 0 ? toRtt / oldRtt : 1);
    const held = heldUp / (helps ? toSpeed : 1);

    // for how long a lock is held
    const ofServer = holdsServer * (g.cpu_time + g.io_time + g.queue_time);
    const hold = ofServer + g.in_xact_wait_time + Math.max(heldUp - g.other_time, 0);
    const newHold = work * ofServer / toSpeed + work * (g.in_xact_wait_time - known)
      + Math.max(held - g.other_time, 0) + trips * holdsNew * (ratio(known, waits) ?? 1);

    // without queues
    const locked = locks ? g.lock_time : 0;
    const driver = beside ? Math.min(g.client_time, turnOld) : 0;
    const delay = g.transaction_time - g.queue_time - locked;
    const newDelay = trips + stream + work * (g.client_time + (g.cpu_time + g.io_time) / toSpeed) + held + (locks ? 0 : g.lock_time);
    const demand = g.cpu_time + driver;
    const newDemand = work * (g.cpu_time / toSpeed + driver);

    // what the queues admit
    const share = Math.min(ratio(locked, g.transaction_time - delay) ?? 0, 1);
    const lockChange = ratio(Math.max(newHold, 0), Math.max(hold, 0)) ?? 1;
    const processorChange = ratio(Math.max(newDemand, 0), Math.max(demand, 0)) ?? 1;
    const cubes = Math.max(cube(g.transaction_time) - cube(delay), 0);
    const lockQueue = Math.min(cubes * share, cube(1.25 * Math.max(hold + g.lock_time, 0)));
    const processorQueue = Math.min(cubes * (1 - share), cube(1.25 * Math.max(g.cpu_time + g.queue_time, 0)));
    const extra = (root(Math.max(cube(g.transaction_time) - lockQueue - processorQueue, 0)) - delay)
      * (share * lockChange + (1 - share) * processorChange);
    const free = root(cube(Math.max(newDelay + extra, 0) / toSessions)
      + (lockQueue * cube(lockChange) + processorQueue * cube(processorChange)) / cube(g.busy_sessions));
    const processor = Math.min(demand / g.processors, g.transaction_time / g.busy_sessions) * processorChange;
    return {
      throughput: ratio(1000, Math.max(free, processor)),
      most: ratio(1000, Math.max(toSessions < g.busy_sessions ? newDelay / toSessions : free, processor)),
      least: ratio(1000, Math.max(free, processor) + Math.max(1 - g.busy_sessions / toSessions, 0) * processor),
    };
  };

  const likely = one(true, true, g.stream_time >= g.rtt && g.rtt !== null, 1, false, false);
  const all = [likely];
  const either = [true, false];
  for (const locks of either) for (const streams of either) for (const warmth of [0, 6])
    for (const helps of either) for (const beside of either) all.push(one(false, locks, streams, warmth, helps, beside));

  const throughput = likely.throughput;
  const margin = throughput === null ? null
    : 0.05 * Math.min(Math.abs(Math.log(throughput * g.transaction_time / (1000 * toSessions))), 1);
  const low = least(...all.map((x) => x.least));
  const high = greatest(...all.map((x) => x.most));
  return {
    predicted_time: ratio(1000 * toSessions, throughput),
    throughput,
    throughput_low: margin === null || low === null ? null : low * (1 - margin),
    throughput_high: margin === null || high === null ? null : high * (1 + margin),
  };
}
